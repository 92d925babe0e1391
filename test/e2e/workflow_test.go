package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// flow is an HTCWorkflow of a test.
type flow struct {
	*trial.Bench
	client *v1alpha1.Client
	name   string
}

// newFlow applies a workflow whose spec is given in YAML.
func newFlow(t *testing.T, name, spec string) *flow {
	t.Helper()
	return flowIn(trial.New(t), name, spec)
}

// flowIn is newFlow in a namespace that is there.
func flowIn(b *trial.Bench, name, spec string) *flow {
	t := b.T
	t.Helper()
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	f := &flow{Bench: b, client: client, name: name}
	text := fmt.Sprintf(
		"apiVersion: htc.cern.ch/v1alpha1\nkind: HTCWorkflow\nmetadata: {name: %s}\nspec:\n%s",
		name,
		spec,
	)
	b.ApplyText(text)
	return f
}

func (f *flow) get() (*v1alpha1.HTCWorkflow, error) {
	return f.client.Workflows(f.Namespace).Get(f.T.Context(), f.name, metav1.GetOptions{})
}

// until waits until the workflow is so.
func (f *flow) until(wanted string, is func(*v1alpha1.HTCWorkflow) bool) *v1alpha1.HTCWorkflow {
	f.T.Helper()
	var w *v1alpha1.HTCWorkflow
	f.Eventually(func() bool {
		var err error
		w, err = f.get()
		return err == nil && is(w)
	}, func() string { return fmt.Sprintf("%s is not %s: %+v", f.name, wanted, w.Status) })
	return w
}

// ended waits until the workflow has ended and its output is here. Each node and each DAG has the time of a wait: a
// chain of them takes minutes on an idle machine.
func (f *flow) ended() *v1alpha1.HTCWorkflow {
	f.T.Helper()
	over := func(w *v1alpha1.HTCWorkflow) bool {
		return w.Status.Phase.Terminal() && (len(w.Status.JobID) == 0 ||
			meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionOutputFetched))
	}
	for far := -1; ; {
		w := f.until("ended, or any further", func(w *v1alpha1.HTCWorkflow) bool { return over(w) || reached(w) > far })
		if over(w) {
			return w
		}
		far = reached(w)
	}
}

// reached counts what a workflow has behind it.
func reached(w *v1alpha1.HTCWorkflow) int {
	n := len(w.Status.JobID) + int(w.Status.Nodes.Done+w.Status.Nodes.Failed)
	if w.Status.Phase.Terminal() {
		n++
	}
	return n
}

// gone deletes the workflow and waits until neither it nor a job of it is left.
func (f *flow) gone(w *v1alpha1.HTCWorkflow) {
	f.T.Helper()
	f.Kubectl("delete", "htcworkflow", f.name, "--wait=false")
	f.Eventually(func() bool {
		_, err := f.get()
		return apierrors.IsNotFound(err)
	}, func() string {
		w, _ := f.get()
		return fmt.Sprintf("%s is still there: %+v", f.name, w.Status.Conditions)
	})
	constraint := fmt.Sprintf("HTCWorkflowUID =?= %q || HTCJobUID =?= %q", w.UID, w.UID)
	require.Empty(f.T, f.Condor("condor_q", constraint, "JobStatus"))
}

// output reads a file of a node.
func (f *flow) output(w *v1alpha1.HTCWorkflow, node, file string) string {
	f.T.Helper()
	text, err := os.ReadFile(
		f.Lab.Path("htcd", "data", "workflows", f.Namespace, f.name, fmt.Sprint(w.Status.Attempt), node, file),
	)
	require.NoError(f.T, err)
	return string(text)
}

func TestAWorkflowOfOneLevelIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "scan", `
  sequences: {count: 3}
  steps:
  - name: generate
    job: {script: {image: centos, command: sh, source: "echo \"$jobid\" > made; echo I am $jobid"}, outputs: [{path: made}]}
  - name: simulate
    pull: [{from: generate, path: made}]
    forEach: {count: 2}
    job: {script: {image: centos, command: sh, source: "cat made; echo number $1"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 9, Done: 9}, w.Status.Nodes)
	require.Equal(t, v1alpha1.SequenceCounts{Total: 3, Succeeded: 3}, w.Status.Sequences)
	require.Len(t, w.Status.JobID, 1)
	require.Equal(t, "job_2\nnumber 1\n", f.output(w, "simulate/job_2/1", "_condor_stdout"))
	require.Equal(t, "job_0\n", f.output(w, "generate/job_0", "made"))
	f.gone(w)
}

func TestAFailedStepEndsItsSequenceAndFinallyRuns(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "partly", `
  sequences: {count: 2}
  steps:
  - name: first
    job: {script: {image: centos, command: sh, source: "echo oops >&2; test $jobid = job_0"}}
  - name: second
    job: {script: {image: centos, command: sh, source: "true"}}
  finally:
    name: report
    job: {script: {image: centos, command: sh, source: "echo reported"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 5, Done: 3, Failed: 1, Futile: 1}, w.Status.Nodes)
	require.Len(t, w.Status.JobID, 2)
	require.Equal(t, "first/job_1", w.Status.Failures[0].Node)
	require.Equal(t, "oops", strings.TrimSpace(w.Status.Failures[0].Stderr))
	require.Equal(t, "reported\n", f.output(w, "report/all", "_condor_stdout"))
}

func TestADeletedWorkflowLeavesHTCondor(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "long", `
  sequences: {count: 2}
  steps:
  - name: sleep
    job: {script: {image: centos, command: sh, source: "sleep 600"}}
`)
	w := f.until("running", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Running > 0 })
	f.gone(w)
}

func TestAStepForAllPullsFromEarlierDAGs(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "levels", `
  sequences: {items: [{A: one}, {A: two}]}
  steps:
  - name: make
    job: {script: {image: centos, command: sh, source: "echo $A > part"}, outputs: [{path: part}]}
  - name: merge
    pairing: All
    pull: [{from: make, path: part}]
    job: {script: {image: centos, command: sh, source: "cat job_*/part"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 3, Done: 3}, w.Status.Nodes)
	require.Equal(t, "one\ntwo\n", f.output(w, "merge/all", "_condor_stdout"))
}

// half is a workflow of which one sequence ends at once, with a code, and the others never do.
func halves(code int, more string) string {
	return fmt.Sprintf(`
%s
  steps:
  - name: only
    job: {script: {image: centos, command: sh, source: "echo $jobid; test $jobid = job_0 && exit %d; sleep 600"}}
`, more, code)
}

func TestEnoughSequencesThatSucceedEndTheOthers(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "enough", halves(0, "  sequences: {count: 3, complete: 1}"))
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.EqualValues(t, 1, w.Status.Sequences.Succeeded)
	require.Empty(t, f.Queued(fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID)))
	require.Equal(
		t,
		"job_0\n",
		f.output(w, "only/job_0", "_condor_stdout"),
		"the output of what was removed with it is kept",
	)
	f.gone(w)
}

func TestAFailureThatAbortsEndsTheOthers(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "abort", halves(3, "  sequences: {count: 2}\n  failurePolicy: Abort"))
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(t, "Aborted", w.Status.Reason)
	require.Empty(t, f.Queued(fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID)))
}

func TestAWorkflowEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "late", halves(0, "  sequences: {count: 2}\n  activeDeadlineSeconds: 10"))
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(t, "DeadlineExceeded", w.Status.Reason)
}

func TestASuspendedWorkflowLeavesHTCondorAndBeginsAnew(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "pause", halves(0, "  sequences: {count: 2}"))
	w := f.until("running", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Running > 0 })
	f.Kubectl("patch", "htcworkflow", f.name, "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	f.until("suspended", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase == v1alpha1.PhaseSuspended })
	require.Empty(t, f.Queued(fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID)))
	f.Kubectl("patch", "htcworkflow", f.name, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	w = f.until(
		"sent again",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Attempt == 2 && w.Status.Nodes.Running > 0 },
	)
	f.gone(w)
}

func TestANodesOutputIsFetchedWhileItsDAGGoesOn(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "partly-here", `
  sequences: {count: 3}
  steps:
  - name: quick
    job: {script: {image: centos, command: sh, source: "echo \"result of $jobid\" > result; echo said by $jobid"}, outputs: [{path: result}]}
  - name: never
    pull: [{from: quick, path: result}]
    job: {script: {image: centos, command: sh, source: "cat result"}, requirements: "Memory > 99999999"}
`)
	w := f.until(
		"done in part",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Done == 3 && w.Status.Nodes.Idle == 3 },
	)
	at := func(node, file string) string {
		return f.Lab.Path("htcd", "data", "workflows", f.Namespace, f.name, fmt.Sprint(w.Status.Attempt), node, file)
	}
	f.Eventually(func() bool {
		for i := range 3 {
			if _, err := os.Stat(at(fmt.Sprintf("quick/job_%d", i), "result")); err != nil {
				return false
			}
		}
		return true
	}, func() string { return "the output of nodes that have ended is not here" })
	require.Equal(t, "result of job_1\n", f.output(w, "quick/job_1", "result"))
	require.NoFileExists(t, at("quick/job_1", ".own-1"))
	f.Eventually(func() bool {
		out, err := f.Lab.Run(
			t.Context(),
			"htcd",
			"logs",
			"-n",
			f.Namespace,
			f.name,
			"--step",
			"quick",
			"--sequence",
			"2",
		)
		return err == nil && strings.Contains(out, "said by job_2\n")
	}, func() string { return "htcd logs does not show it" })
	require.False(t, f.until("", func(*v1alpha1.HTCWorkflow) bool { return true }).Status.Phase.Terminal())

	// The rest comes at the end; what is here stays.
	f.Kubectl("patch", "htcworkflow", f.name, "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
	w = f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(t, "result of job_0\n", f.output(w, "quick/job_0", "result"))
	f.gone(w)
}
