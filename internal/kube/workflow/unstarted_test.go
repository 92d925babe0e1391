package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/matching"
)

func TestAWorkflowWhoseDAGManIsNotStartedNamesTheLimits(t *testing.T) {
	t.Parallel()
	dag := of(0, ledger.Counts{Active: 2}, func(d *DAG) {
		d.Run.Schedd, d.Job = "s@host", &ledger.Proc{Cluster: 7, Status: ledger.StatusOpen, JobStatus: int(condor.Idle)}
	})
	s := newSituation(t).with(dag)
	sent := s.newest().Run.Submitted
	condition := func(v lifecycle.View) *metav1.Condition {
		status := newStatus(s, v)
		s.Workflow.Status = status
		return meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionMatchable)
	}
	require.Nil(t, condition(lifecycle.View{Now: sent.Add(schedd.StartsWithin - time.Second)}), "it may start at any moment")
	late := condition(lifecycle.View{Now: sent.Add(schedd.StartsWithin)})
	require.Equal(t, reasonNotStarted, late.Reason)
	require.Contains(
		t,
		late.Message,
		"DAGMan's job 7.0 is idle at s@host, and starts by itself when there is room: the schedd has at most MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER (200",
	)
	require.Equal(t, reasonNotStarted, s.Workflow.Status.Reason)

	s.DAGs[0].Job.JobStatus = int(condor.Running)
	require.Nil(t, condition(lifecycle.View{Now: sent.Add(2 * schedd.StartsWithin)}), "it has started")
	s.DAGs[0].Steps[0].Idle = 1
	room := &matching.Verdict{Is: metav1.ConditionTrue, Reason: matching.ReasonRoom}
	v := lifecycle.View{Now: sent.Add(2 * schedd.StartsWithin), Match: room}
	require.Equal(t, matching.ReasonRoom, condition(v).Reason)
}
