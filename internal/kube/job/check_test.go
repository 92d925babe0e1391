package job

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestAQueueWithoutNewsIsWrittenDownOnceAMinute(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("many", queueOf(10)))
	w.schedd.Run(1, -1)
	w.crosscheck()
	before, written := w.job("many").Status.LastChecked, w.writes
	for range 4 {
		w.clock = w.clock.Add(10 * time.Second)
		require.NoError(t, w.Refresh(t.Context()))
		w.settle()
	}
	require.Equal(t, written, w.writes)
	w.clock = w.clock.Add(20 * time.Second)
	w.crosscheck()
	require.Equal(t, written+1, w.writes)
	require.GreaterOrEqual(t, w.job("many").Status.LastChecked.Sub(before.Time), time.Minute-time.Second)
}

func TestHTCondorHasConfirmedAStatusOnlyIfItsHistoryWasAskedToo(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("many", queueOf(3)))
	w.crosscheck()
	checked := func() time.Time {
		run, err := w.latest(t.Context(), "uid-many")
		require.NoError(t, err)
		return run.Checked
	}
	before := checked()
	require.False(t, before.IsZero())
	w.schedd.Down(errUnreachable, scheddtest.History)
	for _, happens := range []func(){
		func() {},
		func() { w.schedd.Run(1, 0) },
		func() { w.schedd.Leave(1, 1) },
		func() { w.schedd.Leave(1, -1) },
	} {
		happens()
		w.clock = w.clock.Add(time.Minute)
		require.NoError(t, w.Refresh(t.Context()))
		require.Error(t, w.Crosscheck(t.Context()))
		w.settle()
		require.Equal(t, before, checked())
	}
	w.schedd.Down(nil, scheddtest.History)
	w.crosscheck()
	require.True(t, checked().After(before))
}

func TestWhatHasEndedIsNotWrittenAgainToSayThatHTCondorWasAsked(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Run(1, -1)
	w.crosscheck()
	require.NoError(t, w.callback("one", 0, 0))
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	written := w.writes
	w.schedd.Complete(1, 0, 0)
	w.clock = w.clock.Add(crosscheck.BetweenChecks)
	w.crosscheck()
	run, err := w.latest(t.Context(), "uid-one")
	require.NoError(t, err)
	require.True(t, run.Confirmed)
	require.Equal(t, written, w.writes)
}

func TestAResyncLooksAtWhatIsNotOverAndNewsGoFirst(t *testing.T) {
	w := newWorld(t)
	running := htcjob("running")
	over := htcjob("over", func(job *v1alpha1.HTCJob) { job.Status.Phase = v1alpha1.PhaseSucceeded })
	changed := running.DeepCopy()
	changed.ResourceVersion = "2"
	events := w.Controller.Handler()
	events.OnAdd(htcjob("old"), true)
	events.OnUpdate(running, running)
	events.OnUpdate(over, over)
	require.Equal(t, []int{2, 0}, []int{w.Routine.Len(), w.Changed.Len()})
	events.OnAdd(htcjob("new"), false)
	events.OnUpdate(running, changed)
	events.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/gone"})
	require.Equal(t, []int{2, 3}, []int{w.Routine.Len(), w.Changed.Len()})
}

func TestRunsThatTakeSeveralQuestionsAreCheckedWhole(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.apply(htcjob(name))
		run := w.run(name)
		run.Procs = 50_000 - 1 // as a question counts them
		require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(run) }))
		w.schedd.Complete(run.Cluster, 0, 0)
	}
	asked := w.schedd.Calls(scheddtest.Queue)
	w.crosscheck()
	require.Equal(t, asked+3, w.schedd.Calls(scheddtest.Queue))
	for _, name := range []string{"one", "two", "three"} {
		require.Equal(t, v1alpha1.PhaseSucceeded, w.job(name).Status.Phase)
	}
}

func TestWhatAPassRepairsAlikeIsOneLineOfTheLog(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(o *Options) { o.Log = zerolog.New(&log) })
	w.apply(htcjob("many", queueOf(1500)))
	w.schedd.Complete(1, -1, 3)
	w.schedd.Edit(1, 700, func(j *condor.Job) { j.Status = condor.Removed })
	log.Reset()
	w.crosscheck()
	var repaired []map[string]any
	for line := range strings.Lines(log.String()) {
		var said map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &said))
		if said["message"] == "repaired" {
			delete(said, "evidence")
			repaired = append(repaired, said)
		}
	}
	says := func(kind, jobid, numbers string, jobs int) map[string]any {
		return map[string]any{
			"level": "info", "message": "repaired", "job": "default/many", "jobid": jobid, "kind": kind,
			"jobs": float64(jobs), "numbers": numbers,
			"was": float64(ledger.StatusOpen), "is": float64(ledger.StatusFailed),
		}
	}
	require.Equal(t, []map[string]any{
		says("lost_callback", "1.0", "0-699,701-1499", 1499),
		says("silent_end", "1.700", "700", 1),
	}, repaired)
}

func TestThatAJobJustSentIsSeenWaitingIsWrittenWithWhatFollows(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("quick"))
	require.Equal(t, v1alpha1.PhaseIdle, w.job("quick").Status.Phase)
	require.Equal(t, 1, w.writes)
	w.clock = w.clock.Add(betweenDetails / 2)
	w.crosscheck()
	require.Zero(t, w.job("quick").Status.Idle, "that HTCondor shows it waiting can wait")
	require.Equal(t, 1, w.writes)
	w.later(betweenDetails)
	require.EqualValues(t, 1, w.job("quick").Status.Idle, "but not forever")
	require.Equal(t, 2, w.writes)
}
