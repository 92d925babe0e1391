package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// forgedNodes are jobs of somebody who has read the tag of a workflow's nodes in their ads.
func forgedNodes(flow *v1alpha1.HTCWorkflow) []condor.Job {
	node := condor.NodeTag{UID: string(flow.UID), DAG: 1}
	return []condor.Job{
		{Cluster: 50, Owner: "mallory", Status: condor.Held, HoldReasonCode: 1, StageInFinish: 1, Node: node},
		{
			Cluster:       51,
			Owner:         "mallory",
			Status:        condor.Removed,
			StageInFinish: 1,
			Node:          node,
		}, // LeaveJobInQueue keeps it
		{Cluster: 52, Owner: "mallory", Status: condor.Running, Unread: true, Node: node},
	}
}

func TestForgedNodesHoldUpNeitherDeletionNorSuspension(t *testing.T) {
	for name, passes := range map[string]int{"before HTCondor has shown DAGMan's job": 0, "after that": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flow := w.apply(newWorkflow("one"))
			w.passes(passes)
			w.sends(1, 0, flow)
			w.schedd.Put(forgedNodes(flow)...)
			suspended := w.flow("one").DeepCopy()
			suspended.Spec.Suspend = true
			suspended.Generation++
			require.NoError(t, w.store.Update(suspended))
			for range 5 {
				w.later(time.Minute)
			}
			require.Equal(t, v1alpha1.PhaseSuspended, w.flow("one").Status.Phase, w.flow("one").Status.Reason)
			w.delete("one")
			for range 5 {
				w.later(time.Minute)
			}
			require.Nil(t, w.flow("one"))
			require.Equal(
				t,
				[]string{"50.0", "51.0", "52.0"},
				ids(w.schedd.Jobs()),
				"those of others are left as they are",
			)
		})
	}
}

func TestNodesOfAnAccountThatHtcdHasNoMoreHoldUpTheDeletion(t *testing.T) {
	w := newWorld(t)
	now := accounts{common: "robot"}
	w.withAccounts(&now)
	flow := w.apply(newWorkflow("one"))
	w.passes(1)
	w.sends(1, 0, flow)
	w.schedd.Put(forgedNodes(flow)...)
	require.NoError(
		t,
		scheddtest.Err(
			w.schedd.Change(
				t.Context(),
				schedd.Identity{CCache: "robot"},
				schedd.Remove{Where: "ClusterId == 1", Reason: "by hand"},
			),
		),
	)
	now.common = "robot2"
	w.delete("one")
	w.later(time.Minute)
	require.NotNil(t, w.flow("one"))
	require.Contains(t, w.warned[len(w.warned)-1], "1 job of the account robot, such as 2.0, cannot be removed")
	now.common = "robot"
	for range 2 {
		w.later(time.Hour)
	}
	require.Nil(t, w.flow("one"))
}

func ids(jobs []condor.Job) (all []string) {
	for _, j := range jobs {
		all = append(all, j.ID())
	}
	return all
}
