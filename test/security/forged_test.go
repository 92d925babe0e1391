package security

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// forge sends a job as alice with the tag of an HTCJob's first attempt, and returns its cluster when it runs.
func forge(b *trial.Bench, job *v1alpha1.HTCJob) (cluster string) {
	b.T.Helper()
	cluster = sendForged(b, job, "arguments = 1000")
	b.T.Cleanup(func() { asAlice(b, "condor_rm", cluster) })
	b.Eventually(func() bool { return len(b.Condor("condor_q", "ClusterId == "+cluster+" && JobStatus == 2")) == 1 },
		func() string { return "the forged job never ran" })
	return cluster
}

// forgeHuge is forge for a job that waits and whose attributes are too long for HTCondor to send what htcd asks of
// every job. HTCondor 25.14 accepts no single attribute of 16 MiB.
func forgeHuge(b *trial.Bench, job *v1alpha1.HTCJob) (cluster string) {
	b.T.Helper()
	long := `"` + strings.Repeat("x", 9_000_000) + `"`
	cluster = sendForged(b, job, "requirements = false", "+HTCJobSuccessCodes = "+long, "+HTCJobHeldDeadline = "+long)
	b.T.Cleanup(func() {
		asAlice(
			b,
			"condor_qedit",
			cluster,
			"HTCJobSuccessCodes",
			`""`,
			"HTCJobHeldDeadline",
			"0",
		) // the history would be slow for everybody
		asAlice(b, "condor_rm", cluster)
	})
	var err error
	b.Eventually(func() bool { // once, on a loaded machine, condor_q answered just after the submission
		_, err = b.Lab.Run(
			b.T.Context(),
			"condor_q",
			"-allusers",
			"-json",
			"-attributes",
			"ClusterId,HTCJobSuccessCodes,HTCJobHeldDeadline",
		)
		return err != nil && strings.Contains(err.Error(), "Failed to fetch ads")
	}, func() string { return fmt.Sprintf("condor_q sends an ad of 18 MB: %v", err) })
	return cluster
}

// sendForged sends a job as alice with the tag of an HTCJob's first attempt, and returns its cluster.
func sendForged(b *trial.Bench, job *v1alpha1.HTCJob, lines ...string) (cluster string) {
	b.T.Helper()
	description := fmt.Sprintf(`executable = /bin/sleep
transfer_executable = false
+HTCJobUID = "%s"
+HTCJobAttempt = 1
+HTCJobNamespace = "%s"
+HTCJobName = "%s"
%s
queue
`, job.UID, job.Namespace, job.Name, strings.Join(lines, "\n"))
	out, err := b.Lab.RunInput(
		b.T.Context(),
		description,
		"lab",
		"as",
		"alice",
		"sh",
		"-c",
		"cd /tmp && condor_submit -spool -terse",
	)
	require.NoError(b.T, err)
	cluster, _, _ = strings.Cut(out, ".")
	return cluster
}

// asAlice runs one of HTCondor's commands as alice, even after the test.
func asAlice(b *trial.Bench, command string, args ...string) {
	b.T.Helper()
	_, err := b.Lab.RunAs(context.WithoutCancel(b.T.Context()), "alice", command, args...)
	require.NoError(b.T, err)
}

func TestAForgedTagDoesNotHoldUpADeletion(t *testing.T) {
	b := trial.New(t)
	b.Create("job", "sleep 1000\n")
	job := b.Phase("job", v1alpha1.PhaseRunning)
	forged := forge(b, job)
	b.Kubectl("delete", "htcjob", "job", "--timeout="+trial.Patience.String())
	require.Len(t, b.Condor("condor_q", trial.Tagged(job)), 1)
	require.Len(t, b.Condor("condor_q", "ClusterId == "+forged), 1, "what is not ours is left alone")
}

func TestAHugeForgedAdHidesNothing(t *testing.T) {
	b := trial.New(t)
	b.Create("deleted", "sleep 1000\n")
	b.Create("silent", "sleep 1000\n")
	deleted, silent := b.Phase("deleted", v1alpha1.PhaseRunning), b.Phase("silent", v1alpha1.PhaseRunning)
	forged := []string{forgeHuge(b, deleted), forgeHuge(b, silent)}

	_, err := b.Lab.RunAs(t.Context(), "robot", "condor_rm", silent.Status.JobID[0])
	require.NoError(t, err)
	b.Phase("silent", v1alpha1.PhaseRemoved) // only a cross-check can find out
	b.Kubectl("delete", "htcjob", "deleted", "silent", "--timeout="+trial.Patience.String())
	for i, job := range []*v1alpha1.HTCJob{deleted, silent} {
		require.Equal(
			t,
			[]string{forged[i] + ".0"},
			b.Condor("condor_q", trial.Tagged(job)),
			"what is not ours is left alone",
		)
	}
}

// The finalizer says that htcd may have sent it, the ledger knows nothing, and the schedd has a job with its tag:
// exactly what htcd would see after an interruption.
func TestAForgedTagIsNotAdopted(t *testing.T) {
	b := trial.New(t)
	ctx := t.Context()
	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Stop(ctx))
	t.Cleanup(func() { require.NoError(t, htcd.Start(context.WithoutCancel(ctx))) })
	var jobs []*v1alpha1.HTCJob
	for _, name := range []string{"interrupted", "untouched"} {
		jobs = append(
			jobs,
			b.Create(name, "exit 0\n", func(job *v1alpha1.HTCJob) { job.Finalizers = []string{v1alpha1.Finalizer} }),
		)
	}
	forge(b, jobs[0])
	require.NoError(t, htcd.Start(ctx))

	require.EqualValues(t, 1, b.Ended("untouched").Status.Succeeded)
	refused := b.Until("interrupted", "told apart", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionCredentials)
	})
	said := b.Condition(refused, v1alpha1.ConditionCredentials)
	require.Equal(t, "OtherAccount", said.Reason)
	require.Contains(t, said.Message, "of the account alice carries this HTCJob's tag")
	require.Empty(t, refused.Status.JobID)
	require.Len(t, b.Condor("condor_q", trial.Tagged(jobs[0])), 1, "and nothing is sent beside it")

	_, err := b.Jobs.Patch(
		ctx,
		"interrupted",
		types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.AbandonAnnotation),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	b.Kubectl("delete", "htcjob", "interrupted", "--timeout="+trial.Patience.String())
}
