//go:build argo

package argo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

func TestAStepEndsWithWhatItsHTCJobSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.plugin()
	good := b.submit(of(script("echo 42", ", result: stdout")))
	bad := b.submit(of(script("echo half; echo oh no >&2; exit 3", ", result: stdout")))
	refused := b.submit(of(script("", ", reslut: stdout")))
	step := b.until(good, "Succeeded").step(t, good)
	require.Equal(t, []string{"42", "0"}, []string{step.Outputs.Result, step.Outputs.ExitCode})
	require.Equal(t, "Succeeded", step.parameter("phase"))

	step = b.until(bad, "Failed").step(t, bad)
	require.Equal(t, "3", step.Outputs.ExitCode)
	require.Contains(t, step.Message, "exit code 3: oh no")
	require.Equal(t, []string{"Failed", "oh no"}, []string{step.parameter("phase"), step.parameter("stderr")})

	step = b.until(refused, "Error").step(t, refused)
	require.Contains(t, step.Message, `unknown field "spec.reslut"`)
}

// Two equal steps, a loop, a retry, and an output that another step gets: examples/argo/plugin.yaml, and one in which a
// step always fails.
func TestEachStepAndEachTryIsAnHTCJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.plugin()
	pi := b.submit(example(t, "plugin.yaml"))
	tried := b.submit(fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: tried-}
spec:
  entrypoint: main
  serviceAccountName: argo-workflow
  templates:
  - name: main
    steps:
    - - {name: a, template: equal}
      - {name: b, template: equal}
      - {name: c, template: bad, continueOn: {failed: true}}
    - - name: after
        template: after
        arguments: {parameters: [{name: said, value: "{{steps.c.outputs.parameters.stderr}}, {{steps.c.exitCode}}, {{steps.a.outputs.result}}"}]}
  - name: equal
    plugin: {htcjob: %s}
  - name: bad
    retryStrategy: {limit: 2}
    plugin: {htcjob: %s}
    outputs: {parameters: [{name: stderr, valueFrom: {supplied: {}}}]}
  - name: after
    inputs: {parameters: [{name: said}]}
    plugin: {htcjob: {script: {image: centos, command: bash, source: 'echo "heard: {{inputs.parameters.said}}"'}, result: stdout}}
`, script("echo 7", ", result: stdout"), script("echo broken >&2; exit 4", "")))

	w := b.until(tried, "Succeeded")
	require.Equal(t, "heard: broken, 4, 7", w.step(t, "after").parameter("result"))
	require.NotEqual(t, w.step(t, "a").parameter("name"), w.step(t, "b").parameter("name"))
	require.Len(t, b.jobs(tried), 2+3+1)

	w = b.until(pi, "Succeeded")
	require.Regexp(t, `^3\.1`, w.step(t, "average").parameter("result"))
	require.Len(t, b.jobs(pi), 4)
	for _, job := range append(b.jobs(pi), b.jobs(tried)...) {
		require.Len(t, b.Ads(trial.Tagged(&job)), 1, "it ran once: %s", job.Name)
	}
}

// Whatever ends a workflow, or one of its steps, ends its jobs, also where Argo's controller has only the rights that
// its own manifests give it: it then takes nothing out of the task sets.
func TestNothingRunsOnWhenArgoHasEndedAStep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.plugin()
	b.Kubectl("delete", "rolebinding", "argo-controller")
	long := script("sleep 1000", "")
	workflows := map[string]string{
		"stopped":    b.submit(of(long)),
		"terminated": b.submit(of(long)),
		"late":       b.submit(of(long)),
		"step late":  b.submit(of(long)),
	}
	var began []v1alpha1.HTCJob
	for what, name := range workflows {
		b.Eventually(func() bool {
			all := b.jobs(name)
			return len(all) == 1 && all[0].Status.ClusterID > 0
		}, func() string { return what + " has no job:\n" + b.Kubectl("get", "workflows,htcjobs,pods") })
		began = append(began, b.jobs(name)...)
	}
	for what, patch := range map[string]string{
		"stopped":    `[{"op": "add", "path": "/spec/shutdown", "value": "Stop"}]`,
		"terminated": `[{"op": "add", "path": "/spec/shutdown", "value": "Terminate"}]`,
		"late":       `[{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1}]`,
		"step late":  `[{"op": "add", "path": "/spec/templates/0/timeout", "value": "1s"}]`,
	} {
		b.Kubectl("patch", "workflow", workflows[what], "--type=json", "-p", patch)
	}
	for what, name := range workflows {
		b.Eventually(func() bool { return len(b.jobs(name)) == 0 }, func() string {
			return what + " has left its job:\n" + b.Kubectl(
				"get",
				"workflows,htcjobs,pods",
				"-o",
				"wide",
			) + b.Kubectl(
				"get",
				"workflow",
				name,
				"-o",
				"yaml",
			)
		})
		b.Eventually(
			func() bool { return !b.running(name) },
			func() string { return what + " runs on:\n" + b.Kubectl("get", "workflows") },
		)
	}
	for _, job := range began {
		require.Empty(t, b.Queued(trial.Tagged(&job)))
	}
}

func TestKilledAgentsAndDaemonsFindTheirJobsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.plugin()
	name := b.submit(of(script("echo through", ", htcopts: \"requirements = false\", result: stdout")))
	b.Eventually(func() bool {
		all := b.jobs(name)
		return len(all) == 1 && len(b.Condor("condor_q", trial.Tagged(&all[0]))) == 1
	}, func() string { return "it was never sent:\n" + b.Kubectl("get", "workflows,htcjobs,pods") })
	before := b.jobs(name)[0]

	agents := func() []string {
		return strings.Fields(
			b.Kubectl(
				"get",
				"pods",
				"-l",
				"workflows.argoproj.io/component=agent",
				"-o",
				"jsonpath={.items[*].metadata.uid}",
			),
		)
	}
	killed := agents()
	require.Len(t, killed, 1)
	b.Kubectl("delete", "pod", "-l", "workflows.argoproj.io/component=agent", "--force", "--grace-period=0")
	_, err := b.Lab.Run(
		t.Context(),
		"kubectl",
		"-n",
		parts.PodNamespace,
		"delete",
		"pod",
		"-l",
		"app.kubernetes.io/name=htcd",
		"--force",
		"--grace-period=0",
	)
	require.NoError(t, err)
	b.Eventually(func() bool {
		now := agents()
		return len(now) == 1 && !slices.Equal(now, killed)
	}, func() string { return "there is no other agent:\n" + b.Kubectl("get", "pods") })
	_, err = b.Lab.Run(t.Context(), "condor_qedit", "-constraint", trial.Tagged(&before), "Requirements", "true")
	require.NoError(t, err)
	require.Equal(t, "through", b.until(name, "Succeeded").step(t, name).parameter("result"))
	after := b.jobs(name)
	require.Len(t, after, 1)
	require.Equal(t, before.UID, after[0].UID)
	require.Len(t, b.Ads(trial.Tagged(&before)), 1)
}
