package job

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestARecreatedHTCJobIsToldWhatIsInItsWay(t *testing.T) {
	w := newWorld(t)
	w.schedd.Down(
		&condor.Error{
			Kind:    condor.Limit,
			Command: "condor_submit",
			Stderr:  "Number of submitted jobs would exceed MAX_JOBS_PER_OWNER",
		},
		scheddtest.Submit,
	)
	told := func() (n int) {
		for _, e := range w.events {
			if strings.HasPrefix(e, "Warning LimitReached") {
				n++
			}
		}
		return n
	}
	w.apply(htcjob("one"))
	w.later(time.Minute)
	require.Equal(t, 1, told())

	w.lags = true // the informer hears of the deletion and of the new one at once
	w.delete("one")
	w.later(time.Minute)
	w.lags = false
	another := htcjob("one")
	another.UID, another.ResourceVersion = types.UID("uid-another"), "900"
	require.NoError(t, w.store.Update(another))
	w.Changed.Add("default/one")
	w.settle()
	w.later(time.Minute)
	require.Equal(t, 2, told())
}

func TestAllThatWaitAtALimitSayTheSame(t *testing.T) {
	w := newWorld(t)
	w.schedd.Down(&condor.Error{Kind: condor.Limit, Command: "condor_submit", Stderr: "no room"}, scheddtest.Submit)
	said := func(name string) string { return condition(w.job(name), v1alpha1.ConditionSubmitted).Message }
	w.apply(htcjob("one"))
	w.apply(htcjob("two")) // the schedd is not asked about this one
	require.Contains(t, said("one"), "no room")
	require.Equal(t, said("one"), said("two"))
}
