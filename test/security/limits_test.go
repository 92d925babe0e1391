package security

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// settings writes into the ConfigMap from which the pod gets its variables, for the duration of the test; nil removes a
// setting.
func settings(t *testing.T, values map[string]any) {
	t.Helper()
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	write := func(ctx context.Context, values map[string]any) {
		patch, err := json.Marshal(map[string]any{"data": values})
		require.NoError(t, err)
		_, err = client.CoreV1().ConfigMaps(
			"default",
		).Patch(
			ctx,
			"htcd-settings",
			types.MergePatchType,
			patch,
			metav1.PatchOptions{},
		)
		require.NoError(t, err)
	}
	write(t.Context(), values)
	t.Cleanup(func() {
		for name := range values {
			values[name] = nil
		}
		write(context.WithoutCancel(t.Context()), values)
	})
}

func TestAQueueOverTheSitesLimitIsRefusedAtApply(t *testing.T) {
	b := trial.New(t)
	ctx := t.Context()
	items := func(n int) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			for range n {
				job.Spec.Items = append(job.Spec.Items, v1alpha1.Item{"A": "1"})
			}
		}
	}
	parameters := func(sizes ...int) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Spec.Parameters = map[string]v1alpha1.Parameter{}
			for i, n := range sizes {
				job.Spec.Parameters[fmt.Sprint("P", i)] = make(v1alpha1.Parameter, n)
			}
		}
	}
	table := func(job *v1alpha1.HTCJob) {
		job.Spec.ItemsFrom = &v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: "points", Key: "csv"}}
	}
	older := func(n int32) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.Spec.Queue = &n }
	}
	try := func(change ...func(*v1alpha1.HTCJob)) error {
		_, err := b.Jobs.Create(
			ctx,
			trial.Manifest("try", "exit 0\n", change...),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
		)
		return err
	}
	refuses := func(change ...func(*v1alpha1.HTCJob)) func() bool {
		return func() bool {
			err := try(change...)
			require.True(t, err == nil || apierrors.IsForbidden(err), "%v", err)
			return err != nil
		}
	}
	b.Create("ended", "exit 0\n", trial.Queue(4))
	b.Create("running", "sleep 1000\n", trial.Queue(4))
	b.Phase("ended", v1alpha1.PhaseSucceeded)
	b.Phase("running", v1alpha1.PhaseRunning)

	// What htcd itself says about one that is too large.
	restarted(t, "--max-queue=3")
	b.Create("large", "exit 0\n", trial.Queue(4))
	b.Create("many", "exit 0\n", parameters(2, 2))
	require.Contains(
		t,
		b.Condition(b.Phase("many", v1alpha1.PhaseFailed), v1alpha1.ConditionSubmitted).Message,
		"queue 4 is more than the 3 jobs",
	)
	b.Kubectl("delete", "htcjob", "many")
	said := b.Condition(b.Phase("large", v1alpha1.PhaseFailed), v1alpha1.ConditionSubmitted).Message
	require.Contains(t, said, "queue 4 is more than the 3 jobs that one HTCJob may have here (--max-queue)")

	settings(t, map[string]any{"HTCD_MAX_QUEUE": "3"})
	b.Eventually(refuses(trial.Queue(4)), func() string { return "the apiserver never knew of the limit" })
	for where, change := range map[string][]func(*v1alpha1.HTCJob){
		"script.queue": {trial.Queue(4)}, "queue": {older(4)}, "both": {trial.Queue(4), older(4)},
		"items": {items(4)}, "parameters": {parameters(2, 2)}, "many parameters": {parameters(1, 1, 1, 2, 1, 1, 1, 1, 2, 1)},
	} {
		require.ErrorContains(t, try(change...), said, where)
	}
	text, err := json.Marshal(trial.Manifest("try", "exit 0\n", trial.Queue(4)))
	require.NoError(t, err)
	_, err = b.Lab.RunInput(ctx, string(text), "kubectl", "-n", b.Namespace, "apply", "-f", "-")
	require.ErrorContains(t, err, said)
	require.NoError(t, try())
	require.NoError(t, try(trial.Queue(3)))
	require.NoError(t, try(older(3)))
	require.NoError(t, try(items(3)))
	require.NoError(t, try(parameters(1, 3)))
	require.NoError(t, try(table), "only htcd can count it")
	byPool := func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: "another"} }
	require.NoError(t, try(trial.Queue(4), byPool), "the limit is not for what an HTCPool sends")
	elsewhere := func(job *v1alpha1.HTCJob) { job.Spec.ManagedBy = v1alpha1.MultiKueue }
	require.NoError(t, try(trial.Queue(4), elsewhere), "nor for what runs in another cluster")

	// HTCJobs accepted before can change in all but their queue, and be deleted.
	b.Kubectl("annotate", "htcjob", "ended", "running", "note=kept")
	b.Kubectl("patch", "htcjob", "running", "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":100000}}`)
	_, err = b.Lab.Run(
		ctx,
		"kubectl",
		"-n",
		b.Namespace,
		"patch",
		"htcjob",
		"ended",
		"--type=merge",
		"-p",
		`{"spec":{"script":{"queue":5}}}`,
	)
	require.ErrorContains(t, err, "queue 5 is more than the 3 jobs")
	b.Kubectl("patch", "htcjob", "ended", "--type=merge", "-p", `{"spec":{"script":{"queue":3}}}`, "--dry-run=server")
	b.Kubectl("delete", "htcjob", "running", "ended", "large", "--timeout="+trial.Patience.String())

	settings(t, map[string]any{"HTCD_MAX_QUEUE": nil, "HTCD_MAX_OPEN_PER_NAMESPACE": "9"})
	b.Eventually(refuses(trial.Queue(10)), func() string { return "the apiserver never knew of the other limit" })
	require.ErrorContains(
		t,
		try(trial.Queue(10)),
		"queue 10 is more than the 9 jobs that a namespace may have open here (--max-open-per-namespace): make it several HTCJobs",
	)
	require.NoError(t, try(trial.Queue(9)))

	// No limit, and values that only htcd can read.
	for _, number := range []any{"0", "", "0x2", nil} {
		settings(t, map[string]any{"HTCD_MAX_QUEUE": "3", "HTCD_MAX_OPEN_PER_NAMESPACE": nil})
		b.Eventually(refuses(trial.Queue(4)), func() string { return "the limit was not noticed" })
		settings(t, map[string]any{"HTCD_MAX_QUEUE": number})
		b.Eventually(
			func() bool { return !refuses(trial.Queue(100_000))() },
			func() string { return "it is no limit, and refused" },
		)
	}
}

func TestAWorkflowOverTheSitesLimitIsRefusedAtApply(t *testing.T) {
	b := trial.New(t)
	const step = "job: {script: {image: centos, command: bash, source: 'exit 0'}}"
	apply := func(name, spec string, args ...string) error {
		text := fmt.Sprintf(
			"apiVersion: htc.cern.ch/v1alpha1\nkind: HTCWorkflow\nmetadata: {name: %s}\nspec:\n%s",
			name,
			strings.ReplaceAll(spec, "WORK", step),
		)
		_, err := b.Lab.RunInput(
			t.Context(),
			text,
			"kubectl",
			append([]string{"-n", b.Namespace, "apply", "-f", "-"}, args...)...)
		return err
	}
	try := func(spec string) error { return apply("try", spec, "--dry-run=server") }
	// 2 x (1 + 3) + 1 + 1
	const large = "  sequences: {count: 2}\n  steps:\n  - {name: a, WORK}\n  - {name: b, forEach: {count: 3}, WORK}\n  - {name: c, pairing: All, WORK}\n  finally: {name: d, WORK}\n"
	require.NoError(t, apply("before", large+"  suspend: true\n"))

	// What htcd itself says about one that is too large.
	restarted(t, "--max-queue=9")
	require.NoError(t, apply("large", large))
	var said string
	b.Eventually(func() bool {
		out, err := b.Lab.Run(
			t.Context(),
			"kubectl",
			"-n",
			b.Namespace,
			"get",
			"htcworkflow",
			"large",
			"-o",
			`jsonpath={.status.phase} {.status.conditions[?(@.type=="Failed")].message}`,
		)
		require.NoError(t, err)
		phase, message, _ := strings.Cut(out, " ")
		said = message
		return phase == "Failed"
	}, func() string { return "it is not refused: " + said })
	const words = "10 nodes are more than the 9 that one HTCWorkflow may have here (--max-queue): make it several HTCWorkflows"
	require.Contains(t, said, words)

	settings(t, map[string]any{"HTCD_MAX_QUEUE": "9"})
	b.Eventually(
		func() bool { return try(large) != nil },
		func() string { return "the apiserver never knew of the limit" },
	)
	require.ErrorContains(t, try(large), words)
	require.ErrorContains(
		t,
		try("  sequences: {items: [{A: '1'}, {A: '2'}]}\n  steps:\n  - {name: a, forEach: {count: 5}, WORK}\n"),
		"10 nodes are more than the 9",
	)
	require.ErrorContains(
		t,
		try("  steps:\n  - {name: a, forEach: {count: 10}, WORK}\n"),
		"10 nodes are more than the 9",
	)
	require.ErrorContains(
		t,
		try("  sequences: {count: 5}\n  steps:\n  - {name: a, forEach: {items: [{A: '1'}, {A: '2'}]}, WORK}\n"),
		"10 nodes are more than the 9",
	)
	var listed []string
	for i := range 9 {
		listed = append(listed, fmt.Sprintf("{name: n%d, step: a}", i))
	}
	graph := "  steps:\n  - {name: a, WORK}\n  graph: {nodes: [" + strings.Join(listed, ", ") + "]}\n"
	require.ErrorContains(t, try(graph+"  finally: {name: d, WORK}\n"), "10 nodes are more than the 9")
	for _, fits := range []string{
		graph,
		large + "  pool: {name: another}\n", // the limit is not for what an HTCPool sends
		"  sequences: {count: 9}\n  steps:\n  - {name: a, WORK}\n",
		"  sequences: {count: 8}\n  steps:\n  - {name: a, WORK}\n  - {name: b, pairing: All, WORK}\n",
		"  sequences: {itemsFrom: {configMapKeyRef: {name: points, key: csv}}}\n  steps:\n  - {name: a, WORK}\n", // only htcd can count it
	} {
		require.NoError(t, try(fits), fits)
	}

	// One accepted before can change in all but its size, and be deleted.
	b.Kubectl("annotate", "htcworkflow", "before", "note=kept")
	b.Kubectl("patch", "htcworkflow", "before", "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":100000}}`)
	require.ErrorContains(
		t,
		apply("before", strings.Replace(large, "count: 2", "count: 3", 1)),
		"14 nodes are more than the 9",
	)
	b.Kubectl("delete", "htcworkflow", "before", "large", "--timeout="+trial.Patience.String())
}
