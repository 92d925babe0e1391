package metrics

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/workflow"
	"htc.cern.ch/htcd/internal/schedd"
)

var _ workflow.Observer = (*Metrics)(nil)

func TestWorkflowsAreCountedAsTheyComeChangeAndGo(t *testing.T) {
	m := New(Build{})
	flow := func(phase v1alpha1.Phase) *v1alpha1.HTCWorkflow {
		return &v1alpha1.HTCWorkflow{Status: v1alpha1.HTCWorkflowStatus{Phase: phase}}
	}
	seen := m.workflows.count()
	seen.OnAdd(flow(""), true)
	seen.OnAdd(flow(v1alpha1.PhaseRunning), false)
	seen.OnUpdate(flow(""), flow(v1alpha1.PhaseRunning))
	seen.OnDelete(cache.DeletedFinalStateUnknown{Obj: flow(v1alpha1.PhaseRunning)})
	m.WorkflowsWatched(errors.New("forbidden"))
	m.DAGSubmitted(7)
	for _, err := range []error{nil, nil, errors.New("no answer")} {
		m.NodesPassed("cross-check", schedd.Endpoint{Schedd: "s"}, err)
	}
	m.RuleActed(v1alpha1.ActionFinish)
	m.NodesFetched(5)
	m.NodeFetchFailed("NoSpace")
	got := page(t, m)
	for series, want := range map[string]string{
		`htcd_htcworkflows{phase="Pending"}`:                                   "0",
		`htcd_htcworkflows{phase="Running"}`:                                   "1",
		`htcd_htcworkflows_watched`:                                            "0",
		`htcd_node_passes_total{pass="cross-check",result="OK",schedd="s"}`:    "2",
		`htcd_node_passes_total{pass="cross-check",result="Error",schedd="s"}`: "1",
		`htcd_submitted_dags_total`:                                            "1",
		`htcd_submitted_nodes_total`:                                           "7",
		`htcd_rules_acted_total{action="Finish"}`:                              "1",
		`htcd_fetched_nodes_total`:                                             "5",
		`htcd_node_fetch_errors_total{reason="NoSpace"}`:                       "1",
	} {
		require.Equal(t, want, value(t, got, series), series)
	}
}
