package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// another applies a further workflow.
func (f *flow) another(name, spec string) *flow {
	f.T.Helper()
	text := fmt.Sprintf(
		"apiVersion: htc.cern.ch/v1alpha1\nkind: HTCWorkflow\nmetadata: {name: %s}\nspec:\n%s",
		name,
		spec,
	)
	f.ApplyText(text)
	return &flow{Bench: f.Bench, client: f.client, name: name}
}

// pooled returns a flow that has nothing yet, and a pool.
func pooled(t *testing.T, spec string) (*flow, keptPool) {
	t.Helper()
	b := trial.New(t)
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	return &flow{Bench: b, client: client}, testPool(b, "grid", spec)
}

func TestASuspendedPoolHoldsAWorkflow(t *testing.T) {
	t.Parallel()
	none, grid := pooled(t, "state: Online")
	wait, end := none.Gate()
	f := none.another("scan", fmt.Sprintf(`
  pool: {name: %s}
  steps:
  - name: waits
    forEach: {count: 2}
    job: {script: {image: centos, command: sh, source: "true"}, requirements: "Memory > 99999999"}
  - name: runs
    needs: []
    job: {script: {image: centos, command: bash, source: "%s"}}
  - name: after
    needs: [runs]
    job: {script: {image: centos, command: sh, source: "true"}}
`, grid.name, wait))
	w := f.until(
		"running",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Running == 1 && w.Status.Nodes.Idle == 2 },
	)
	grid.until(func(p *v1alpha1.HTCPool) bool {
		return p.Status.Open == 3 && p.Status.Running == 1 && p.Status.Idle == 2
	})

	nodes := fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID)
	own := fmt.Sprintf("HTCJobUID =?= %q", w.UID)
	const held = " && JobStatus == 5 && HoldReasonCode == 1 && HoldReasonSubCode == 7284"
	queue := func() string {
		return strings.Join(
			f.Condor(
				"condor_q",
				nodes+" || "+own,
				"ClusterId",
				"JobUniverse",
				"JobStatus",
				"HoldReasonSubCode",
				"HoldReason",
			),
			"\n",
		)
	}
	grid.edit(`{"state":"Suspended"}`)
	f.Eventually(func() bool {
		return len(f.Condor("condor_q", nodes+held)) == 2 && len(f.Condor("condor_q", own+held)) == 1
	}, queue)
	w = f.until("held by the pool", func(w *v1alpha1.HTCWorkflow) bool {
		return w.Status.Nodes.Held == 2 && w.Status.Reason == "PoolSuspended"
	})
	require.Contains(
		t,
		meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionHeld).Message,
		"HTCPool "+grid.name+" is suspended",
	)

	// What runs goes on to its end, and nothing comes after it.
	end()
	f.until(
		"done in part",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Done == 1 && w.Status.Nodes.Running == 0 },
	)
	f.Eventually(
		func() bool { return len(f.Condor("condor_q", nodes)) == 2 },
		queue,
	) // its callback came before its end in the queue

	// A DAG that somebody releases is held again.
	_, err := f.Lab.Run(t.Context(), "condor_release", "-constraint", own)
	require.NoError(t, err)
	f.Eventually(func() bool { return len(f.Condor("condor_q", own+held+" && NumHolds >= 2")) == 1 }, queue)

	grid.edit(`{"state":"Draining"}`)
	f.until(
		"released",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Done == 2 && w.Status.Nodes.Idle == 2 },
	)
	f.Eventually(func() bool { return len(f.Condor("condor_q", own+" && JobStatus == 2")) == 1 }, queue)
	require.Len(t, f.Condor("condor_history", nodes+" && JobStatus == 4"), 2, "each ran once")

	grid.edit(`{"state":"Suspended"}`)
	f.Eventually(func() bool {
		return len(f.Condor("condor_q", nodes+held)) == 2 && len(f.Condor("condor_q", own+held)) == 1
	}, queue)
	f.gone(w)
}

func TestAWorkflowKeepsToTheLimitsOfItsPool(t *testing.T) {
	t.Parallel()
	none, grid := pooled(t, "limits: {maxOpen: 6, maxIdle: 1, maxHeld: 5}")
	waits := fmt.Sprintf(`
  pool: {name: %s}
  sequences: {count: 10}
  steps:
  - name: waits
    job: {script: {image: centos, command: sh, source: "true"}, requirements: "Memory > 99999999"}
`, grid.name)
	first := none.another("first", waits)
	w := first.until(
		"idle",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Idle > 0 && w.Status.Nodes.Total == 10 },
	)
	require.Less(t, w.Status.Nodes.Idle, int32(6), "DAGMan exceeds its limit by a few, and not the other one")
	require.Len(
		t,
		first.Condor("condor_q", fmt.Sprintf("HTCJobUID =?= %q && DAGMan_MaxIdle == 1 && DAGMan_MaxJobs == 6", w.UID)),
		1,
		"DAGMan keeps to them",
	)
	full := func(w *v1alpha1.HTCWorkflow) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSubmitted)
		return c != nil && c.Reason == "PoolLimit" && strings.Contains(c.Message, " of 1 jobs idle (limits.maxIdle)")
	}
	second := none.another("second", waits)
	second.until("waiting", full)
	none.Script("job", "exit 0\n", grid.by)
	none.Until("job", "waiting", func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "PoolLimit" })
	none.Kubectl("delete", "htcjob", "job")

	first.gone(w)
	w = second.until("sent", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Idle > 0 })
	second.gone(w)
}

func TestDAGManKeepsToThePaceOfAPool(t *testing.T) {
	t.Parallel()
	none, grid := pooled(t, "limits: {newPerMinute: 20}") // one every 3 seconds
	f := none.another("slow", fmt.Sprintf(`
  pool: {name: %s}
  steps:
  - name: waits
    forEach: {count: 6}
    job: {script: {image: centos, command: sh, source: "true"}, requirements: "Memory > 99999999"}
`, grid.name))
	w := f.until("sent", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Idle == 6 })
	var sent []int
	for _, at := range f.Condor("condor_q", fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID), "QDate") {
		_, date, _ := strings.Cut(at, " ") // after the job's id
		second, err := strconv.Atoi(date)
		require.NoError(t, err)
		sent = append(sent, second)
	}
	require.Len(t, sent, 6)
	require.GreaterOrEqual(t, slices.Max(sent)-slices.Min(sent), 5*3-2, sent)
	f.gone(w)
}
