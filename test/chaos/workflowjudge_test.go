package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// soundWorkflow returns the evidence of a correct HTCWorkflow of two steps in two sequences, in the second of which the
// first fails.
func soundWorkflow() WorkflowEvidence {
	flow := Flow{Sequences: 2, Succeeded: 1, Phase: v1alpha1.PhaseFailed, Steps: []FlowStep{
		{Name: "a", Lines: 1}, {Name: "b", Pulls: "a", Lines: 2},
	}, Differs: map[string]End{"a/job_1": {Code: 3}, "b/job_1": {Futile: true}}}
	ad := func(cluster, node, code int) Ad {
		return Ad{
			ClusterID:    cluster,
			JobStatus:    completed,
			ExitBySignal: new(false),
			ExitCode:     &code,
			NumJobStarts: 1,
			Workflow:     "u",
			DAG:          1,
			Node:         node,
		}
	}
	dag := Ad{ClusterID: 8, JobStatus: completed, NumJobStarts: 1, UID: "u", Attempt: 1}
	row := func(node int, step string, sequence, cluster, status int) NodeRow {
		return NodeRow{UID: "u", DAG: 1, Node: node, Step: step, Sequence: sequence, Cluster: cluster, Status: status}
	}
	return WorkflowEvidence{
		Sent: []SentWorkflow{
			{Trial: WorkflowTrial{Name: "flow-000", Shape: WorkflowShape{Name: "two", Flow: flow}}, UID: "u"},
		},
		Objects: map[string]v1alpha1.HTCWorkflow{"u": {
			ObjectMeta: metav1.ObjectMeta{Name: "flow-000", UID: types.UID("u"), Generation: 1},
			Status: v1alpha1.HTCWorkflowStatus{
				Phase: v1alpha1.PhaseFailed, Attempt: 1, ObservedGeneration: 1, JobID: []string{"8.0"},
				Sequences: v1alpha1.SequenceCounts{Total: 2, Succeeded: 1, Failed: 1},
				Nodes:     v1alpha1.NodeCounts{Total: 4, Done: 2, Failed: 1, Futile: 1},
				Steps: []v1alpha1.StepStatus{
					{Name: "a", NodeCounts: v1alpha1.NodeCounts{Total: 2, Done: 1, Failed: 1}},
					{Name: "b", NodeCounts: v1alpha1.NodeCounts{Total: 2, Done: 1, Futile: 1}},
				},
				Failures: []v1alpha1.NodeFailure{{Node: "a/job_1"}},
			},
		}},
		Ads:  []Ad{dag, ad(9, 0, 0), ad(10, 1, 0), ad(11, 2, 3)},
		Runs: []Run{{UID: "u", Attempt: 1, Generation: 1, State: "Submitted", Cluster: 8}},
		Nodes: []NodeRow{
			row(
				0,
				"a",
				0,
				9,
				rowSucceeded,
			), row(1, "b", 0, 10, rowSucceeded), row(2, "a", 1, 11, rowFailed), row(3, "b", 1, 0, rowFutile),
		},
		Kept: map[string]string{
			"flow-000/1/a/job_0/ran": "a job_0 0 11\n",
			"flow-000/1/b/job_0/ran": "a job_0 0 11\nb job_0 0 22\n",
		},
	}
}

func TestAWorkflowThatRanOnceHasNoFindings(t *testing.T) {
	require.Empty(t, JudgeWorkflows(soundWorkflow()))
}

func TestAFactoryOfNodesMustLeaveTheQueue(t *testing.T) {
	e := soundWorkflow()
	e.Made = []Ad{{Queued: true, ClusterID: 9, Workflow: "u", DAG: 1}}
	require.Error(t, settledWorkflows(e))
	findings := JudgeWorkflows(e)
	require.Len(t, findings, 1)
	require.Equal(t, LeftOver, findings[0].Fault)
}

func TestAFailureUnderAbortMayBeToldByItsCallbackAlone(t *testing.T) {
	e := soundWorkflow()
	told := &e.Ads[3]
	told.JobStatus, told.LastJobStatus, told.ExitCode = removed, 2, nil
	e.Nodes[2].ExitCode = new(3)
	require.NotEmpty(t, JudgeWorkflows(e))
	e.Sent[0].Trial.Shape.Flow.Policy = v1alpha1.FailureAbort
	require.Empty(t, JudgeWorkflows(e))
	e.Nodes[2].ExitCode = new(4)
	require.NotEmpty(t, JudgeWorkflows(e))
}

func TestAWorkflowThatHadEndedBeforeTheLedgerWasLostNeedsNoRows(t *testing.T) {
	e := soundWorkflow()
	e.Runs, e.Nodes = nil, nil
	require.NotEmpty(t, JudgeWorkflows(e))
	e.LedgerLost = true
	require.Empty(t, JudgeWorkflows(e))
	delete(e.Kept, "flow-000/1/b/job_0/ran")
	require.NotEmpty(t, JudgeWorkflows(e))
}

func TestWhatIsWrongWithAWorkflowIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		spoil func(*WorkflowEvidence)
	}{
		"a node in two clusters": {Doubled, func(e *WorkflowEvidence) {
			again := e.Ads[1]
			again.ClusterID = 20
			e.Ads = append(e.Ads, again)
			e.Nodes[0].Cluster = 20
		}},
		"a DAG in two clusters": {Doubled, func(e *WorkflowEvidence) {
			again := e.Ads[0]
			again.ClusterID = 20
			e.Ads = append(e.Ads, again)
		}},
		"one DAG too many": {Doubled, func(e *WorkflowEvidence) {
			again := e.Ads[0]
			again.ClusterID, again.Attempt = 20, 2
			e.Ads = append(e.Ads, again)
		}},
		"a node that ran again after another had read its file": {Doubled, func(e *WorkflowEvidence) {
			e.Kept["flow-000/1/a/job_0/ran"] = "a job_0 0 12\n"
		}},
		"a node that ran twice in one directory": {Wrong, func(e *WorkflowEvidence) {
			e.Kept["flow-000/1/a/job_0/ran"] = "a job_0 0 11\na job_0 0 11\n"
		}},
		"output that was not fetched": {Lost, func(e *WorkflowEvidence) { delete(e.Kept, "flow-000/1/b/job_0/ran") }},
		"a node that never ran":       {Lost, func(e *WorkflowEvidence) { e.Ads = e.Ads[:3] }},
		"another end in the ledger":   {Wrong, func(e *WorkflowEvidence) { e.Nodes[2].Status = rowSucceeded }},
		"a futile node that ran": {Wrong, func(e *WorkflowEvidence) {
			ran := e.Ads[1]
			ran.ClusterID, ran.Node = 20, 3
			e.Ads = append(e.Ads, ran)
		}},
		"a job in the queue":    {LeftOver, func(e *WorkflowEvidence) { e.Ads[0].Queued = true }},
		"a staged directory":    {LeftOver, func(e *WorkflowEvidence) { e.Staged = []string{"u-1"} }},
		"rows of nobody":        {LeftOver, func(e *WorkflowEvidence) { e.Runs = append(e.Runs, Run{UID: "v"}) }},
		"a deleted one's files": {LeftOver, func(e *WorkflowEvidence) { e.Sent[0].Deleted, e.Objects, e.Runs, e.Nodes = true, nil, nil, nil }},
		"counts of its own": {Wrong, func(e *WorkflowEvidence) {
			w := e.Objects["u"]
			w.Status.Nodes.Done = 3
			e.Objects["u"] = w
		}},
		"one that never ended": {Lost, func(e *WorkflowEvidence) {
			w := e.Objects["u"]
			w.Status.Phase = v1alpha1.PhaseRunning
			e.Objects["u"] = w
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := soundWorkflow()
			c.spoil(&e)
			findings := JudgeWorkflows(e)
			require.NotEmpty(t, findings)
			for _, f := range findings {
				require.Equal(t, c.fault, f.Fault, f)
			}
		})
	}
}

func TestAPlanOfWorkflowsHasItsShareOfEverything(t *testing.T) {
	require.Equal(t, NewWorkflowPlan(7, 100), NewWorkflowPlan(7, 100))
	p := NewWorkflowPlan(1, 100)
	shapes, did := map[string]int{}, map[string]int{}
	for _, trial := range p.Workflows {
		shapes[trial.Shape.Name]++
	}
	for _, s := range WorkflowShapes {
		require.GreaterOrEqual(t, shapes[s.Name], 100/len(WorkflowShapes), s.Name)
	}
	for _, d := range p.Disturbances {
		did[d.Lane]++
		require.LessOrEqual(t, d.At+d.For, p.Workflows[99].At+30*time.Second)
	}
	for lane, least := range map[string]int{htcdLane: 10, scheddLane: 4, callbacksLane: 6, dagmanLane: 40} {
		require.GreaterOrEqual(t, did[lane], least, lane)
	}
}

func TestAFlowHasAtMostThirtyNodesAndKnowsThoseThatDiffer(t *testing.T) {
	for _, s := range WorkflowShapes {
		for _, f := range []*Flow{&s.Flow, s.Edited} {
			if f == nil {
				continue
			}
			names := map[string]bool{}
			for _, step := range f.Steps {
				for _, n := range f.nodes(step) {
					names[n.name()] = true
				}
			}
			require.LessOrEqual(t, len(names), 30, s.Name)
			for name := range f.Differs {
				require.True(t, names[name], "%s: %s", s.Name, name)
			}
		}
	}
}
