package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/usage"
)

func (w *world) usage() (r usage.Report) {
	w.t.Helper()
	a, err := w.Usage(w.t.Context(), asks())
	require.NoError(w.t, err)
	defer a.Close()
	var b bytes.Buffer
	require.NoError(w.t, a.Write(w.t.Context(), &b))
	require.NoError(w.t, json.Unmarshal(b.Bytes(), &r))
	return r
}

func TestUsageIsThatOfTheLedgerAndOfTheQueue(t *testing.T) {
	w := newWorld(t)
	_, err := w.Usage(t.Context(), asks())
	require.ErrorContains(t, err, "no job has started yet")
	w.sent(1)
	r := w.usage()
	require.Nil(t, r.Usage)
	require.NotNil(t, r.Asked)

	w.runs()
	w.set(func() {
		w.ad = condor.Job{JobStartDate: 1, MemoryUsage: 300, RequestMemory: 400, RequestCpus: 1, DiskUsage: 10}
		w.ad.Tag.UID, w.ad.Tag.Attempt = "u", 1
	})
	r = w.usage()
	require.Equal(t, [3]int{1, 1, 0}, [3]int{r.Jobs, r.Running, r.Ended})
	require.Equal(t, "300Mi", r.Memory.Worst.String())

	w.set(func() { w.silent = errors.New("nobody answers") })
	require.Equal(t, "nobody answers", w.usage().Unknown)

	w.ends()
	w.proc(func(p *ledger.Proc) {
		p.Source, p.Usage = "crosscheck", usage.Use{Memory: 310, Wall: 10, AskedMemory: 400}.String()
	})
	w.write(func(tx *ledger.Tx) error {
		run, err := tx.Run("u", 1)
		run.Confirmed = true
		return errors.Join(err, tx.UpdateRun(run))
	})
	r = w.usage()
	require.Empty(t, r.Unknown, "nobody is asked")
	require.Nil(t, r.Asked)
	require.Equal(t, 1, r.Ended)
	require.Equal(t, "310Mi", r.Memory.Worst.String())
}
