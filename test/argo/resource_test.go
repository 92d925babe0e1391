//go:build argo

package argo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// example returns a manifest of examples/argo, after edits.
func example(t *testing.T, file string, edits ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples/argo", file))
	require.NoError(t, err)
	for i := 0; i < len(edits); i += 2 {
		require.Contains(t, string(text), edits[i])
	}
	return strings.NewReplacer(edits...).Replace(string(text))
}

// labelled returns the HTCJobs of a workflow of examples/argo.
func (b bench) labelled(workflow string) []v1alpha1.HTCJob { return b.selected("workflow=" + workflow) }

func TestTheResourceTemplatesOfTheExamples(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Apply("argo/rbac.yaml")
	pi, reason := b.submit(example(t, "workflow.yaml")), b.submit(example(t, "reason.yaml"))

	w := b.until(reason, "Succeeded")
	require.Contains(t, w.step(t, "run").Message, "exit code 64", "that is all that Argo says")
	require.Equal(t, "Failed", w.step(t, "why").parameter("phase"))
	require.Contains(t, w.step(t, "why").parameter("message"), "no such file: geometry.db")
	require.Regexp(t, "^exit code 3 because of: .*no such file: geometry.db", w.step(t, "after").parameter("result"))

	w = b.until(pi, "Succeeded")
	require.Regexp(t, `^3\.1`, w.step(t, "average").parameter("result"))
	require.Len(t, b.labelled(pi), 4, "onExit leaves what has ended")
	for _, job := range b.labelled(pi) {
		require.Len(t, b.Ads(trial.Tagged(&job)), 1, "it ran once: %s", job.Name)
	}
}

// sent waits until each of a workflow's HTCJobs is in the schedd's queue, and returns them.
func (b bench) sent(workflow string, n int) []v1alpha1.HTCJob {
	b.T.Helper()
	b.Eventually(func() bool {
		all := b.labelled(workflow)
		for _, job := range all {
			if len(b.Condor("condor_q", trial.Tagged(&job))) == 0 {
				return false
			}
		}
		return len(all) == n
	}, func() string { return "not all were sent:\n" + b.Kubectl("get", "workflows,htcjobs,pods") })
	return b.labelled(workflow)
}

// waits keeps the example's simulations idle.
var waits = []string{"/ n }'\n            retries: 2\n", "/ n }'\n            htcopts: requirements = false\n"}

func TestAKilledPodThatWaitsDoublesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Apply("argo/rbac.yaml")
	name := b.submit(example(t, "workflow.yaml", append(waits, "[1, 2, 3]", "[1]")...))
	before := b.sent(name, 1)[0]
	pods := func() string {
		return b.Kubectl(
			"get",
			"pods",
			"-l",
			"workflows.argoproj.io/workflow="+name,
			"--field-selector=status.phase=Running",
			"-o",
			"name",
		)
	}
	b.Eventually(
		func() bool { return pods() != "" },
		func() string { return "no pod waits:\n" + b.Kubectl("get", "pods") },
	)
	killed := pods()
	b.Kubectl("delete", "pods", "-l", "workflows.argoproj.io/workflow="+name, "--force", "--grace-period=0")
	b.Eventually(
		func() bool { return pods() != "" && pods() != killed },
		func() string { return "no other pod waits:\n" + b.Kubectl("get", "pods") },
	)
	_, err := b.Lab.Run(t.Context(), "condor_qedit", "-constraint", trial.Tagged(&before), "Requirements", "true")
	require.NoError(t, err)
	b.until(name, "Succeeded")
	after := b.labelled(name)
	require.Len(t, after, 2, "the simulation and the average")
	require.Contains(t, []any{after[0].UID, after[1].UID}, before.UID)
	for _, job := range after {
		require.Len(t, b.Ads(trial.Tagged(&job)), 1)
	}
}

func TestStopAndDeadlinesLeaveNoJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Apply("argo/rbac.yaml")
	for what, patch := range map[string]string{
		"stopped":    `[{"op": "add", "path": "/spec/shutdown", "value": "Stop"}]`,
		"late":       `[{"op": "replace", "path": "/spec/activeDeadlineSeconds", "value": 1}]`,
		"terminated": `[{"op": "replace", "path": "/spec/ttlStrategy/secondsAfterFailure", "value": 1}, {"op": "add", "path": "/spec/shutdown", "value": "Terminate"}]`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := b
			of := *b.Bench
			of.T = t
			b.Bench = &of
			name := b.submit(example(t, "workflow.yaml", append(waits, "[1, 2, 3]", "[1]")...))
			jobs := b.sent(name, 1)
			b.Kubectl("patch", "workflow", name, "--type=json", "-p", patch)
			b.Eventually(func() bool { return len(b.labelled(name)) == 0 }, func() string {
				return "it has left its job:\n" + b.Kubectl(
					"get",
					"workflows,htcjobs,pods",
				) + b.Kubectl(
					"describe",
					"workflows",
				)
			})
			for _, job := range jobs {
				require.Empty(t, b.Queued(trial.Tagged(&job)))
			}
		})
	}
}
