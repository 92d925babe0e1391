//go:build !releases

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// The experiments with which a thesis evaluated an operator for another batch system, repeated here with HTCondor: what
// Kubernetes users who send jobs elsewhere do all day.

// written returns what, according to kubectl, an ended HTCJob has written.
func written(b *trial.Bench, name string, flags ...string) string {
	b.T.Helper()
	out, err := b.Lab.Run(
		b.T.Context(),
		"kubectl",
		append([]string{"htcjob", "logs", name, "-n", b.Namespace}, flags...)...)
	require.NoError(b.T, err)
	return out
}

func TestExperiment1ASimpleJobAndItsOutput(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("simple", "echo Hello from HTCondor\n")
	b.Kubectl("wait", "--for=condition=Complete", "htcjob/simple", "--timeout="+trial.Patience.String())
	require.Equal(t, "Hello from HTCondor\n", written(b, "simple", "--follow"), "it waits until the output has come")
	require.Equal(t, "Hello from HTCondor\n", written(b, "simple"))
}

func TestExperiments2And3AFailingScriptIsReportedCorrectedAndFinished(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("script", "echo begun\ncat /no/such/file\n")
	b.Kubectl("wait", "--for=condition=Failed", "htcjob/script", "--timeout="+trial.Patience.String())
	job := b.Fetched("script")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, []int32{0, 0, 1}, countsOf(job))
	failure := job.Status.Failures[0]
	require.Equal(t, "ExitCode", failure.Reason)
	require.EqualValues(t, 1, *failure.ExitCode)
	require.Contains(t, failure.Stderr, "/no/such/file")
	require.Contains(t, b.Condition(job, v1alpha1.ConditionFailed).Message, "exit code 1")

	b.Script("script", "echo begun\necho corrected\n")
	b.Kubectl("wait", "--for=condition=Complete", "htcjob/script", "--timeout="+trial.Patience.String())
	job = b.Fetched("script")
	require.Equal(t, []int32{0, 1, 0}, countsOf(job))
	require.EqualValues(t, 2, job.Status.Attempt)
	require.False(t, meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionFailed))
	require.Empty(t, job.Status.Failures)
	require.Equal(t, "begun\ncorrected\n", written(b, "script"))
}

func TestExperiment4AFinishedJobIsChangedAndRunAgain(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("script", "echo first\n")
	first := b.Fetched("script")
	require.Equal(t, "first\n", written(b, "script"))
	b.Script("script", "echo second\n")
	b.Kubectl("wait", "--for=condition=Complete", "htcjob/script", "--timeout="+trial.Patience.String())
	second := b.Fetched("script")
	require.EqualValues(t, 2, second.Status.Attempt)
	require.NotEqual(t, first.Status.JobID, second.Status.JobID)
	require.Equal(t, "second\n", written(b, "script"))
}

// half requests a little more than half of the lab's machine: two such jobs never run at the same time.
func half(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "request_cpus = 17\n" }

func TestExperiments5To7JobsContendForOneSlot(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	names := []string{"cancelled", "deleted", "short", "last"}
	for i, source := range []string{"sleep 1000\n", "sleep 1000\n", "sleep 2\n", "echo it was my turn\n"} {
		b.Script(names[i], source, half)
		b.Until(names[i], "sent", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })
	}
	// contend waits until the first has the slot, and checks that all others wait for it.
	contend := func(names ...string) *v1alpha1.HTCJob {
		runs := b.Phase(names[0], v1alpha1.PhaseRunning)
		require.Equal(t, []int32{1, 0, 0}, countsOf(runs))
		require.EqualValues(t, 1, runs.Status.Running)
		for _, name := range names[1:] {
			waits := b.Until(name, "seen waiting", func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == 1 })
			require.Equal(t, v1alpha1.PhaseIdle, waits.Status.Phase)
			require.Equal(t, []int32{1, 0, 0}, countsOf(waits))
			require.Len(t, b.Condor("condor_q", trial.Tagged(waits)+" && JobStatus == 1"), 1)
		}
		return runs
	}

	// Cancelled while it runs: mirrored, and the next one starts.
	job := contend(names...)
	_, err := b.Lab.Run(t.Context(), "condor_rm", "-constraint", trial.Tagged(job))
	require.NoError(t, err)
	job = b.Phase("cancelled", v1alpha1.PhaseRemoved)
	require.Equal(t, []int32{0, 0, 1}, countsOf(job))
	require.Contains(t, job.Status.Failures[0].Message, "via condor_rm")

	// Cancelled by deleting the object, and the next one starts.
	job = contend(names[1:]...)
	b.Kubectl("delete", "htcjob", "deleted", "--timeout="+trial.Patience.String())
	require.Len(t, b.Condor("condor_history", trial.Tagged(job)+" && JobStatus == 3"), 1)

	// Ends by itself, and the next one starts.
	last := b.Fetched("last")
	require.Equal(t, []int32{0, 1, 0}, countsOf(last))
	require.Equal(t, "it was my turn\n", written(b, "last"))
	short := b.Get("short")
	require.Equal(t, v1alpha1.PhaseSucceeded, short.Status.Phase)
	require.False(t, last.Status.CompletionTime.Before(short.Status.CompletionTime))
}

func TestExperiment8DeletingWhileRunning(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("running", "echo begun\nsleep 1000\n", trial.Queue(3))
	job := b.Until("running", "running in full", func(job *v1alpha1.HTCJob) bool { return job.Status.Running == 3 })
	b.Kubectl("delete", "htcjob", "running", "--timeout="+trial.Patience.String())
	require.Empty(t, b.Condor("condor_q", trial.Tagged(job)))
	require.NoDirExists(t, b.Kept(job))
	require.Empty(t, b.Kubectl("get", "htcjob", "running", "--ignore-not-found"))
}

// This test changes everybody's account, so it does not run beside others.
func TestExperiment9AnUnusableSecretIsRefusedAndItsMendingNoticed(t *testing.T) {
	b := trial.New(t)
	var right struct {
		Data map[string]string `json:"data"`
	}
	require.NoError(
		t,
		json.Unmarshal([]byte(b.InDefault(t.Context(), "get", "secret", "kinit-secret", "-o", "json")), &right),
	)
	mend := func(ctx context.Context) {
		text, err := json.Marshal(
			map[string]any{
				"apiVersion": "v1",
				"kind":       "Secret",
				"metadata":   map[string]any{"name": "kinit-secret"},
				"data":       right.Data,
			},
		)
		require.NoError(t, err)
		_, err = b.Lab.RunInput(ctx, string(text), "kubectl", "-n", "default", "apply", "-f", "-")
		require.NoError(t, err)
	}
	t.Cleanup(func() { mend(context.WithoutCancel(t.Context())) })
	for name, c := range map[string]struct {
		do           []string
		reason, says string
	}{
		"no-user":     {[]string{"patch", "secret", "kinit-secret", "--type=merge", "-p", `{"data":{"username":null}}`}, "InvalidCredential", "username"},
		"no-password": {[]string{"patch", "secret", "kinit-secret", "--type=merge", "-p", `{"data":{"password":null}}`}, "InvalidCredential", "password"},
		"no-secret":   {[]string{"delete", "secret", "kinit-secret"}, "SecretMissing", "there is no secret kinit-secret in namespace default"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.T = t
			b.InDefault(t.Context(), c.do...)
			b.Script(name, "exit 0\n")
			job := b.Until(name, "refused", func(job *v1alpha1.HTCJob) bool {
				return meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionCredentials)
			})
			said := b.Condition(job, v1alpha1.ConditionCredentials)
			require.Equal(t, c.reason, said.Reason)
			require.Contains(t, said.Message, c.says)
			require.Contains(t, b.Kubectl("describe", "htcjob", name), said.Message)
			require.Empty(t, job.Status.JobID)
			require.Empty(t, b.Condor("condor_q", trial.Tagged(job)))
			mend(t.Context())
			require.Equal(t, []int32{0, 1, 0}, countsOf(b.Ended(name)), "nothing else is needed")
		})
	}
}

func TestExperiment9EachMissingMandatoryFieldIsRefused(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	whole := map[string]any{"image": "centos", "command": "bash", "source": "exit 0\n"}
	apply := func(spec map[string]any) error {
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(),
			"kind":       v1alpha1.Kind,
			"metadata":   map[string]any{"name": "partial"},
			"spec":       spec,
		})
		require.NoError(t, err)
		_, err = b.Lab.RunInput(t.Context(), string(text), "kubectl", "-n", b.Namespace, "apply", "-f", "-")
		return err
	}
	for _, field := range slices.Sorted(maps.Keys(whole)) {
		script := maps.Clone(whole)
		delete(script, field)
		require.ErrorContains(t, apply(map[string]any{"script": script}), "spec.script."+field+": Required value")
	}
	require.ErrorContains(t, apply(map[string]any{}), "spec.script: Required value")
	require.ErrorContains(t, apply(nil), "spec: ")
	list, err := b.Jobs.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	require.NoError(t, apply(map[string]any{"script": whole}))
	require.EqualValues(t, 1, b.Ended("partial").Status.Succeeded)
}
