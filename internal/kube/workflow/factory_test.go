package workflow

import (
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

func TestAFactoryWhoseLauncherIsGoneIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.Site.FactoryAbove = 1
	w.apply(newWorkflow("flow"))
	for number := range 2 {
		w.schedd.Put(condor.Job{
			Cluster: 7, Proc: number, Owner: scheddtest.Robot, Status: condor.Idle, StageInFinish: 1,
			Node: condor.NodeTag{UID: "uid-flow", DAG: 1, Number: number},
		})
	}
	require.NoError(t, w.Crosscheck(t.Context()))
	_, jobID := w.factoryOf(1)
	require.Equal(t, "7.0", jobID)
	robot := schedd.Identity{CCache: scheddtest.Robot}
	require.NoError(t, scheddtest.Err(w.schedd.Change(t.Context(), robot, schedd.Remove{Where: condor.UIDConstraint("uid-flow"), Reason: "by hand"})))
	for range 4 {
		require.NoError(t, w.Crosscheck(t.Context()))
		w.later(time.Minute)
	}
	require.Equal(t, v1alpha1.PhaseRemoved, w.flow("flow").Status.Phase)
	for _, j := range w.schedd.Jobs() {
		require.NotEqual(t, 7, j.Cluster)
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
	put(7, scheddtest.Robot, 1, "")
	require.Equal(t, "NotHeld", held().Reason)
}
