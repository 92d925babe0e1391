package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestWhatIsRepairedAlikeIsToldOnceForADAG(t *testing.T) {
	w := newWorld(t)
	run := w.send("u1", wordsAtOnce/2+100)
	run.Factory = 4
	w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
	jobs := make([]condor.Job, wordsAtOnce+200)
	for n := range jobs {
		jobs[n] = condor.Job{
			Cluster: 92, Proc: n, Owner: scheddtest.Robot, Status: condor.Idle, StageInFinish: 1,
			Node: condor.NodeTag{UID: "u1", DAG: 1, Number: n},
		}
	}
	w.schedd.Put(jobs...)
	w.schedd.Complete(92, -1, 0)
	w.schedd.Leave(92, -1)
	w.crosscheck()
	require.Len(t, w.repaired, 2, "they are written in pieces")
	var kinds []crosscheck.Repair
	for _, alike := range w.repaired {
		kinds = append(kinds, alike.Kind)
		require.Len(t, alike.Numbers, len(jobs)/2)
	}
	require.ElementsMatch(t, []crosscheck.Repair{crosscheck.LostCallback, crosscheck.SilentEnd}, kinds)
}

func TestNodesThatAFactoryMakesAreProcsOfOneCluster(t *testing.T) {
	w := newWorld(t)
	run := w.send("u1", 2)
	run.Factory = 4
	w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
	put := func(proc, number int) {
		w.schedd.Put(condor.Job{
			Cluster: 92, Proc: proc, Owner: scheddtest.Robot, Status: condor.Idle, StageInFinish: 1,
			Node: condor.NodeTag{UID: "u1", DAG: 1, Number: number},
		})
	}
	put(0, 0)
	put(1, 1)
	put(3, 2) // somebody's with a wrong number
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{ledger.NodeIdle, ledger.NodeIdle, waits, waits}, w.states("u1"))
	require.Equal(t, "92.1", w.nodes("u1")[1].JobID())

	report := func(jobID string) error {
		return w.book.Write(t.Context(), func(tx *ledger.Tx) error {
			_, err := Record(tx, notify.Callback{
				Name: "u1", Namespace: "physics", JobID: jobID, Retcode: 3, Node: &notify.Node{Number: 1, Exit: 3},
			}, notify.Hash("the token of u1"), w.clock)
			return err
		})
	}
	require.ErrorIs(t, report("92.0"), notify.ErrUnknownJob, "it is another node")
	require.NoError(t, report("92.1"))
	w.schedd.Complete(92, 0, 0)
	w.schedd.Leave(92, 0)
	w.schedd.Complete(92, 1, 3)
	w.schedd.Leave(92, 1)
	w.ends("u1", 1)
	w.crosscheck()
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{ledger.NodeDone, hasFail, hasFail, hasFail}, w.states("u1"))
	n := w.nodes("u1")[3]
	require.Equal(t, crosscheck.ReasonLost, n.Reason, "a failure before it has nothing to do with it")
	require.Equal(t, messageUnmade, n.Message)
}
