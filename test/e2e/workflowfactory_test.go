package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// More nodes than --factory-above, of which few run: those that were not made have no job.
func TestAStepOfManyNodesIsMadeByAFactory(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	f := flowIn(c.Bench, "many", `
  sequences: {count: 1001, complete: 6}
  steps:
  - name: sim
    job:
      script: {image: centos, command: sh, source: "case $jobid in job_[01]) exit 3 ;; esac; sleep 3; echo $jobid | tee out"}
      outputs: [{path: out}]
`)
	w := f.ended()
	n := w.Status.Nodes
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, "%+v", w.Status)
	require.Equal(t, int32(2), n.Failed, "%+v", w.Status.Failures)
	require.GreaterOrEqual(t, n.Done, int32(6))
	require.Equal(t, v1alpha1.NodeCounts{Total: 1001, Done: n.Done, Failed: 2, Futile: 999 - n.Done}, n)
	require.Regexp(t, `^\d+\.0$`, w.Status.Failures[0].JobID)
	require.Regexp(t, `^\d+\.1$`, w.Status.Failures[1].JobID, "they are procs of one cluster")
	// Which six of those that began together are the first depends on the machine.
	kept, err := filepath.Glob(f.Lab.Path("htcd", "data", "workflows", f.Namespace, f.name, "1", "sim", "job_*", "out"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(kept), int(n.Done), "some end while they are removed")
	node := filepath.Base(filepath.Dir(kept[0]))
	require.Equal(t, node+"\n", f.output(w, "sim/"+node, "out"))
	sequence := strings.TrimPrefix(node, "job_")
	require.Equal(t, node+"\n", c.ends(0, "logs", "many", "--step", "sim", "--sequence", sequence))
	f.gone(w)
}

func TestAFactoryOfNodesThatSomebodyHoldsSaysSo(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "many", `
  sequences: {count: 1001}
  throttle: {maxJobs: 2}
  steps:
  - name: sim
    job:
      script: {image: /opt/image/busybox, command: sh, source: sleep 1000}
`)
	w := f.until("running", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Running == 2 })
	cluster, _, _ := strings.Cut(f.Condor("condor_q", fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID))[0], ".")
	toFactory := func(tool string, more ...string) {
		args := append([]string{"-constraint", "ClusterId == " + cluster + " && ProcId =?= undefined"}, more...)
		_, err := f.Lab.Run(t.Context(), tool, args...)
		require.NoError(t, err)
	}
	held := func(reason string) *metav1.Condition {
		var c *metav1.Condition
		f.until(reason, func(w *v1alpha1.HTCWorkflow) bool {
			c = meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionHeld)
			return c != nil && c.Reason == reason
		})
		return c
	}
	toFactory("condor_hold", "-reason", "somebody wants that")
	require.Regexp(
		t,
		`^HTCondor makes none of the 999 nodes that wait: somebody wants that .*\(cluster `+cluster+`\)\. `,
		held("FactoryPaused").Message,
	)
	toFactory("condor_release")
	held("NotHeld")
	f.gone(w)
}

// A launcher that does not run cannot take its factory back.
func TestAFactoryOfNodesIsRemovedAlsoWhileItsLauncherIsHeld(t *testing.T) {
	t.Parallel()
	stopped := func(phase v1alpha1.Phase) func(f *flow) {
		return func(f *flow) {
			f.until(string(phase), func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase == phase })
		}
	}
	for name, stop := range map[string]func(f *flow, w *v1alpha1.HTCWorkflow){
		"suspended": func(f *flow, _ *v1alpha1.HTCWorkflow) {
			f.Kubectl("patch", "htcworkflow", f.name, "--type=merge", "-p", `{"spec":{"suspend":true}}`)
			stopped(v1alpha1.PhaseSuspended)(f)
		},
		"its deadline has passed": func(f *flow, _ *v1alpha1.HTCWorkflow) {
			f.Kubectl("patch", "htcworkflow", f.name, "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
			stopped(v1alpha1.PhaseFailed)(f)
		},
		"deleted": (*flow).gone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, "many", `
  sequences: {count: 1001}
  throttle: {maxJobs: 2}
  steps:
  - name: sim
    job:
      script: {image: /opt/image/busybox, command: sh, source: sleep 1000}
`)
			w := f.until("running", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Running == 2 })
			_, err := f.Lab.Run(t.Context(), "condor_hold", "-constraint", fmt.Sprintf("HTCJobUID =?= %q", w.UID))
			require.NoError(t, err)
			stop(f, w)
			nodes := fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID)
			require.Empty(t, f.Queued(nodes))
			left, err := f.Lab.Run(
				t.Context(),
				"condor_q",
				"-factory",
				"-allusers",
				"-constraint",
				nodes,
				"-af",
				"ClusterId",
			)
			require.NoError(t, err)
			require.Empty(t, left, "its factory")
		})
	}
}
