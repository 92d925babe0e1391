package workflow

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// factoryOf returns how many nodes of a DAG a factory makes, and what its first node is called in HTCondor.
func (w *world) factoryOf(dag int) (n int, jobID string) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) error {
		run, err := tx.Run("uid-flow", dag)
		if err != nil {
			return err
		}
		n = run.Factory
		last, err := tx.Node("uid-flow", dag, 0)
		jobID = last.JobID()
		return err
	}))
	return n, jobID
}

func TestAStepOfManyNodesThatIsAloneInItsLevelIsMadeByAFactory(t *testing.T) {
	w := newWorld(t)
	w.Site.FactoryAbove = 1
	w.apply(newWorkflow("flow"))
	n, _ := w.factoryOf(1)
	require.Equal(t, 2, n)

	// Whether a factory makes them stands in what was sent, whatever the flag says now.
	w.Site.FactoryAbove = 0
	w.openLedger()
	w.wait()
	n, _ = w.factoryOf(1)
	require.Equal(t, 2, n)
	w.ends(1)
	n, _ = w.factoryOf(2)
	require.Zero(t, n, "one node for all")
	w.ends(2)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("flow").Status.Phase)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestRulesThatResizeHaveDAGManSendTheNodes(t *testing.T) {
	w := newWorld(t)
	w.Site.FactoryAbove = 1
	flow := newWorkflow("flow")
	flow.Spec.Rules = []v1alpha1.Rule{{Metric: "queued", When: "value < 10", Action: v1alpha1.ActionGrow}}
	w.apply(flow)
	n, _ := w.factoryOf(1)
	require.Zero(t, n)
}

// made applies a workflow whose nodes, so many, a factory makes as cluster 7: two are there.
func (w *world) made(nodes int) {
	w.t.Helper()
	w.Site.FactoryAbove = 1
	flow := newWorkflow("flow")
	flow.Spec.Sequences.Count = new(int32(nodes))
	w.apply(flow)
	w.schedd.PutFactory(condor.Job{
		Cluster: 7, Owner: scheddtest.Robot, Node: condor.NodeTag{UID: "uid-flow", DAG: 1}, Made: nodes,
		Factory: &condor.Factory{Next: 2, Open: true},
	})
	w.putNode(0)
	w.putNode(1)
	require.NoError(w.t, w.Crosscheck(w.t.Context()))
	_, jobID := w.factoryOf(1)
	require.Equal(w.t, "7.0", jobID)
}

func (w *world) putNode(number int) {
	w.schedd.Put(condor.Job{
		Cluster: 7, Proc: number, Owner: scheddtest.Robot, Status: condor.Idle, StageInFinish: 1,
		Node: condor.NodeTag{UID: "uid-flow", DAG: 1, Number: number},
	})
}

// launcherGoes has somebody remove the launcher while it does not run.
func (w *world) launcherGoes() {
	w.t.Helper()
	robot := schedd.Identity{CCache: scheddtest.Robot}
	require.NoError(
		w.t,
		scheddtest.Err(
			w.schedd.Change(
				w.t.Context(),
				robot,
				schedd.Remove{Where: condor.UIDConstraint("uid-flow"), Reason: "by hand"},
			),
		),
	)
	require.NoError(w.t, w.Crosscheck(w.t.Context()))
}

// left returns how many jobs, and factories, there are of the nodes.
func (w *world) left() (jobs, factories int) {
	w.t.Helper()
	for _, j := range w.schedd.Jobs() {
		if j.Cluster == 7 {
			jobs++
		}
	}
	count := func(condor.Job) error { factories++; return nil }
	these := schedd.Query{Where: condor.NodesConstraint("uid-flow"), Factories: true}
	require.NoError(w.t, w.schedd.Query(w.t.Context(), schedd.Identity{}, these, count))
	return jobs, factories
}

func (w *world) noneLeft() {
	w.t.Helper()
	jobs, factories := w.left()
	require.Zero(w.t, jobs)
	require.Zero(w.t, factories)
}

func TestAFactoryWhoseLauncherIsGoneIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.made(2)
	w.launcherGoes()
	for range 4 {
		require.NoError(t, w.Crosscheck(t.Context()))
		w.later(time.Minute)
	}
	require.Equal(t, v1alpha1.PhaseRemoved, w.flow("flow").Status.Phase)
	w.noneLeft()
}

func TestNothingIsRemovedAfterALauncherThatHasRunToItsEnd(t *testing.T) {
	w := newWorld(t)
	w.made(2)
	w.schedd.Complete(1, 0, 0)
	require.NoError(t, w.Crosscheck(t.Context()))
	w.later(time.Minute)
	require.Zero(t, w.schedd.Calls(scheddtest.Remove), "HTCondor only has not said yet how the nodes ended")
	w.schedd.Complete(7, -1, 0)
	require.NoError(t, w.Crosscheck(t.Context()))
	w.later(time.Minute)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), "the next DAG")
}

func TestADeletedWorkflowIsAskedForFactoriesOfItsNodesAlone(t *testing.T) {
	w := newWorld(t)
	w.made(2)
	before := w.schedd.Calls(scheddtest.Factories)
	w.delete("flow")
	w.later(time.Minute)
	w.noneLeft()
	require.Equal(t, before+3, w.schedd.Calls(scheddtest.Factories), "twice, and the question of this test")
}

func TestAFactoryWhoseLauncherIsGoneBeforeAStopIsThroughIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.made(2)
	w.schedd.Down(errors.New("no answer"), scheddtest.Remove)
	w.suspend("flow", true)
	w.schedd.Down(nil, scheddtest.Remove)
	w.launcherGoes()
	for range 4 {
		w.later(time.Minute)
		require.NoError(t, w.Crosscheck(t.Context()))
	}
	require.Equal(t, v1alpha1.PhaseSuspended, w.flow("flow").Status.Phase)
	w.noneLeft()
}

func TestAFactoryThatAScheddGoesOnWithAfterItsRestartIsRemovedAgain(t *testing.T) {
	for name, stop := range map[string]func(*world){
		"suspended": func(w *world) { w.setSuspend("flow", true) },
		"deleted":   func(w *world) { w.deleteNow("flow") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.made(3)
			stop(w)
			w.later(2 * time.Second)
			jobs, factories := w.left()
			require.Equal(t, []int{0, 1}, []int{jobs, factories}, "it stays for some seconds")
			w.schedd.Restart()
			w.putNode(2)
			for range 4 {
				w.later(time.Minute)
				require.NoError(t, w.Crosscheck(t.Context()))
			}
			w.noneLeft()
		})
	}
}

func TestWhyAFactoryMakesNoMoreNodesIsSaid(t *testing.T) {
	w := newWorld(t)
	w.Site.FactoryAbove = 1
	w.apply(newWorkflow("flow"))
	put := func(cluster int, owner string, dag int, paused string) {
		w.schedd.PutFactory(condor.Job{
			Cluster: cluster, Owner: owner, Node: condor.NodeTag{UID: "uid-flow", DAG: dag}, Made: 2,
			Factory: &condor.Factory{Open: true, Paused: paused},
		})
	}
	put(7, scheddtest.Robot, 1, "somebody wants that")
	put(8, scheddtest.Robot, 2, "another one")
	put(9, "mallory", 1, "forged")
	held := func() metav1.Condition {
		for range 2 { // the first shows whose the DAG is
			require.NoError(t, w.Crosscheck(t.Context()))
			w.later(10 * time.Second)
		}
		c := meta.FindStatusCondition(w.flow("flow").Status.Conditions, v1alpha1.ConditionHeld)
		require.NotNil(t, c)
		return *c
	}
	c := held()
	require.Equal(t, metav1.ConditionTrue, c.Status)
	require.Equal(t, "FactoryPaused", c.Reason)
	require.Contains(t, c.Message, "HTCondor makes none of the 2 nodes that wait: somebody wants that (cluster 7). ")
	require.Equal(t, "FactoryPaused", w.flow("flow").Status.Reason)
	put(7, scheddtest.Robot, 1, schedd.PoolHold+"grid is suspended")
	require.Equal(t, "PoolSuspended", held().Reason)
	put(7, scheddtest.Robot, 1, "")
	require.Equal(t, "NotHeld", held().Reason)
}
