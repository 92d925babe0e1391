package fetch

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// elsewhere lets the output 0 of a run go to a URL, and the output 1 to a registry.
func (w *world) elsewhere(run ledger.Run) {
	w.t.Helper()
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		return tx.SetDestinations(
			run.UID,
			run.Attempt,
			[]ledger.Destination{
				{Number: 0, Path: "big", URL: "u/{proc}"},
				{Number: 1, Path: "m", Artifact: "r/m:{proc}"},
			},
		)
	}))
}

// written returns what is listed, and how far its artifacts are.
func (w *world) written(run ledger.Run) (all []ledger.Written, n ledger.PushCounts) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		if all, err = tx.Written(run.UID, run.Attempt, 100); err == nil {
			n, err = tx.Pushes(run.UID, run.Attempt)
		}
		return err
	}))
	return all, n
}

func TestWhatWasSentElsewhereIsRecordedWithTheFetch(t *testing.T) {
	w := newWorld(t)
	run := w.completed("one", 3)
	w.elsewhere(run)
	hex := strings.Repeat("0a", 32)
	w.schedd.Leaves(
		"1.1",
		map[string]string{".htcd-out/0/m": "x", ".htcd-out/0.sent": "0 12\n1 5\n7 5\n" + hex + "  0\n"},
	)
	w.fetch("one")
	all, n := w.written(run)
	big := ledger.Destination{Path: "big", URL: "u/{proc}"}
	require.Equal(t, []ledger.Written{
		{
			Destination: big,
			Proc:        0,
			Size:        ledger.UnknownSize,
		}, {Destination: big, Proc: 1, Size: 12, Digest: "sha256:" + hex}, {Destination: big, Proc: 2, Size: ledger.UnknownSize},
	}, all)
	require.Equal(t, ledger.PushCounts{Any: true, Unpushed: 3}, n)

	// The ledger forgets that the output is here.
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		p, err := tx.Proc(run.UID, run.Attempt, 1)
		require.NoError(t, err)
		p.Fetched = ledger.NotFetched
		return tx.UpdateProc(p)
	}))
	w.fetch("one")
	again, _ := w.written(run)
	require.Equal(t, all, again, "what was known stays")
}

func TestOutputThatIsNotHereIsNotPushed(t *testing.T) {
	w := newWorld(t)
	lost, lacking := w.completed("lost", 1), w.completed("lacking", 1)
	w.elsewhere(lost)
	w.elsewhere(lacking)
	lacks := unsendable(0, "(errno 2) No such file or directory")
	w.schedd.Down(lacks, scheddtest.Transfer)
	w.fetch("lost")
	w.clock = w.clock.Add(giveUpAfter)
	w.fetch("lost")
	all, n := w.written(lost)
	require.Len(t, all, 1, "the node has written it nevertheless")
	require.Equal(t, ledger.PushCounts{Any: true, NotPushed: 1, Note: "the output of a job could not be fetched"}, n)

	w.schedd.Down(nil, scheddtest.Transfer)
	lacks.Lacks = []string{"m"}
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Err: lacks, After: true})
	w.fetch("lacking")
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Err: lacks, After: true})
	w.clock = w.clock.Add(time.Hour)
	w.fetch("lacking")
	all, n = w.written(lacking)
	require.Len(t, all, 1)
	require.Equal(t, ledger.PushCounts{Any: true, NotPushed: 1, Note: "HTCondor did not keep all files of a job"}, n)
}
