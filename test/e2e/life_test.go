package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// spec merges a change into an HTCJob's spec.
func spec(b *trial.Bench, name, change string) {
	b.T.Helper()
	b.Kubectl("patch", "htcjob", name, "--type=merge", "-p", `{"spec":{`+change+`}}`)
}

func countsOf(job *v1alpha1.HTCJob) []int32 {
	return []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed}
}

// queued returns an HTCJob's jobs in the queue that have not completed.
func queued(b *trial.Bench, job *v1alpha1.HTCJob) []string {
	b.T.Helper()
	return b.Condor("condor_q", trial.Tagged(job)+" && JobStatus =!= 4", "JobStatus")
}

// leaves waits until no such job is left: a removed job has ended before its slot is free.
func leaves(b *trial.Bench, job *v1alpha1.HTCJob) {
	b.T.Helper()
	b.Eventually(func() bool { return len(queued(b, job)) == 0 }, func() string { return fmt.Sprint(queued(b, job)) })
}

// told waits until an Event with that reason contains these words.
func told(b *trial.Bench, name, reason, words string) {
	b.T.Helper()
	list := func() string {
		return b.Kubectl("get", "events.events.k8s.io", "-o",
			`jsonpath={range .items[?(@.regarding.name=="`+name+`")]}{.reason}: {.note}{"\n"}{end}`)
	}
	b.Eventually(func() bool {
		for line := range strings.Lines(list()) {
			if strings.HasPrefix(line, reason+": ") && strings.Contains(line, words) {
				return true
			}
		}
		return false
	}, func() string { return fmt.Sprintf("no %s with %q among\n%s", reason, words, list()) })
}

func TestASuspendedHTCJobLeavesHTCondorAndComesBackWhole(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("paused", "test $1 = 0 || sleep 1000\n", trial.Queue(3))
	b.Until("paused", "done in part", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Succeeded == 1 && job.Status.Phase == v1alpha1.PhaseRunning
	})
	spec(b, "paused", `"suspend":true`)
	b.Kubectl("wait", "--for=condition=Suspended", "htcjob/paused", "--timeout="+trial.Patience.String())
	job := b.Get("paused")
	require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
	require.Equal(t, []int32{0, 1, 0}, countsOf(job))
	require.Empty(t, queued(b, job))
	require.Contains(
		t,
		b.Condition(b.Get("paused"), v1alpha1.ConditionSuspended).Message,
		"2 jobs were removed from HTCondor",
	)
	told(b, "paused", "Stopping", "2 jobs are being removed")
	told(b, "paused", "Suspended", "2 jobs were removed")

	// While it is suspended, everything may change.
	b.Script("paused", "exit 0\n", trial.Queue(2), func(job *v1alpha1.HTCJob) { job.Spec.Suspend = true })
	b.Script("paused", "exit 0\n", trial.Queue(2))
	b.Kubectl("wait", "--for=condition=Complete", "htcjob/paused", "--timeout="+trial.Patience.String())
	job = b.Get("paused")
	require.Equal(t, []int32{0, 2, 0}, countsOf(job))
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, metav1.ConditionFalse, b.Condition(job, v1alpha1.ConditionSuspended).Status)
	told(b, "paused", "Resumed", "spec.suspend is false")
}

func TestAnHTCJobThatIsMadeSuspendedIsSentWhenItIsResumed(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("later", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.Suspend = true })
	job := b.Phase("later", v1alpha1.PhaseSuspended)
	require.Empty(t, job.Finalizers)
	require.Zero(t, job.Status.Attempt)
	b.Kubectl("wait", "--for=condition=Suspended", "htcjob/later", "--timeout="+trial.Patience.String())
	require.Empty(t, queued(b, job))
	spec(b, "later", `"suspend":false`)
	require.EqualValues(t, 1, b.Ended("later").Status.Attempt)

	spec(b, "later", `"suspend":true`)
	job = b.Until(
		"later",
		"looked at",
		func(job *v1alpha1.HTCJob) bool { return job.Status.ObservedGeneration == job.Generation },
	)
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "what has ended stays as it is")
	b.Kubectl("delete", "htcjob", "later", "--timeout="+trial.Patience.String())
}

// All tests share htcd and the schedd, so this one runs alone.
func TestAStopSurvivesTheAbsenceOfTheScheddAndARestartOfHtcd(t *testing.T) {
	b := trial.New(t)
	htcd, condor := b.Lab.Part("htcd"), b.Lab.Part("schedd")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, condor.Start(ctx))
		require.NoError(t, htcd.Start(ctx))
	})
	b.Script("paused", "sleep 1000\n")
	b.Script("late", "sleep 1000\n")
	b.Phase("paused", v1alpha1.PhaseRunning)
	b.Phase("late", v1alpha1.PhaseRunning)
	require.NoError(t, condor.Stop(t.Context()))
	spec(b, "paused", `"suspend":true`)
	spec(b, "late", `"activeDeadlineSeconds":2`)
	for _, name := range []string{"paused", "late"} {
		job := b.Until(name, "waiting for the schedd", func(job *v1alpha1.HTCJob) bool {
			return meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionBackendReachable)
		})
		require.Equal(t, []int32{1, 0, 0}, countsOf(job))
	}
	told(b, "late", "Stopping", "2 seconds have passed")
	require.NoError(t, htcd.Restart(t.Context()))
	require.NoError(t, condor.Start(t.Context()))
	b.Kubectl("wait", "--for=condition=Suspended", "htcjob/paused", "--timeout="+trial.Patience.String())
	job := b.Get("paused")
	require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
	require.Equal(t, []int32{0, 0, 0}, countsOf(job))
	require.Empty(t, queued(b, job))
	job = b.Ended("late")
	require.Equal(t, "DeadlineExceeded", b.Condition(job, v1alpha1.ConditionFailed).Reason)
	leaves(b, job)
}

func TestTheActiveDeadlineEndsWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("late", "test $1 = 0 || sleep 1000\n", trial.Queue(2))
	b.Until("late", "done in part", func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded == 1 })
	b.Kubectl("patch", "htcjob", "late", "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":5}}`)
	job := b.Ended("late")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, []int32{0, 1, 1}, countsOf(job))
	said := b.Condition(job, v1alpha1.ConditionFailed)
	require.Equal(t, "DeadlineExceeded", said.Reason)
	require.Contains(
		t,
		said.Message,
		"5 seconds have passed since the submission (spec.activeDeadlineSeconds): 1 of 2 jobs had not ended",
	)
	require.Equal(t, "DeadlineExceeded", job.Status.Failures[0].Reason)
	took := job.Status.CompletionTime.Sub(job.Status.StartTime.Time)
	require.GreaterOrEqual(t, took, 4*time.Second)
	leaves(b, job)
	told(b, "late", "DeadlineExceeded", "5 seconds have passed")
}

func TestAnEndedHTCJobIsDeletedAfterItsTime(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("short", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.TTLSecondsAfterFinished = new(int32(3)) })
	b.Script("kept", "exit 0\n")
	b.Eventually(func() bool {
		_, err := b.Jobs.Get(t.Context(), "short", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, func() string { return b.Kubectl("describe", "htcjob", "short") })
	told(b, "short", "Expired", "3 seconds after its end")
	b.Ended("kept")
}

func TestARemovalInHTCondorIsMirrored(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("taken", "sleep 1000\n", trial.Queue(2))
	job := b.Phase("taken", v1alpha1.PhaseRunning)
	_, err := b.Lab.Run(t.Context(), "condor_rm", "-reason", "the machine is needed", "-constraint", trial.Tagged(job))
	require.NoError(t, err)
	job = b.Phase("taken", v1alpha1.PhaseRemoved)
	require.Equal(t, []int32{0, 0, 2}, countsOf(job))
	said := b.Condition(job, v1alpha1.ConditionFailed)
	require.Equal(t, "Removed", said.Reason)
	require.Contains(t, said.Message, "the machine is needed (by user ")
	require.Contains(t, job.Status.Failures[0].Message, "the machine is needed (by user ")
	told(b, "taken", "Removed", "2 of 2 jobs removed from HTCondor")
}

func TestWhatMayBeEditedWhileJobsAreActive(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("busy", "sleep 1000\n")
	job := b.Phase("busy", v1alpha1.PhaseRunning)
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       v1alpha1.Kind,
		"metadata":   map[string]any{"name": "busy"},
		"spec": map[string]any{
			"script": map[string]any{"image": "centos", "command": "bash", "source": "sleep 2000\n"},
		},
	})
	require.NoError(t, err)
	_, err = b.Lab.RunInput(t.Context(), string(manifest), "kubectl", "-n", b.Namespace, "apply", "-f", "-")
	require.ErrorContains(
		t,
		err,
		"the spec cannot change while jobs are active in HTCondor: wait until they end, set spec.suspend to true, or delete this HTCJob",
	)

	b.Kubectl("label", "htcjob", "busy", "a=b")
	spec(b, "busy", `"ttlSecondsAfterFinished":3600,"activeDeadlineSeconds":3600`)
	now := b.Until(
		"busy",
		"looked at",
		func(job *v1alpha1.HTCJob) bool { return job.Status.ObservedGeneration == job.Generation },
	)
	require.Greater(t, now.Generation, job.Generation)
	require.EqualValues(t, 1, now.Status.Attempt)
	require.Equal(t, job.Status.JobID, now.Status.JobID)
	require.Len(t, queued(b, job), 1)
}

func TestAnEndedHTCJobRunsAgainWhenAskedTo(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("again", "exit 1\n")
	require.Equal(t, v1alpha1.PhaseFailed, b.Ended("again").Status.Phase)

	// A wait right after the edit does not return for the previous end.
	b.Script("again", "exit 0\n")
	b.Kubectl("wait", "--for=condition=Complete", "htcjob/again", "--timeout="+trial.Patience.String())
	job := b.Get("again")
	require.EqualValues(t, 2, job.Status.Attempt)
	told(b, "again", "NextAttempt", "attempt 2 begins: the spec has changed")

	b.Kubectl("annotate", "htcjob", "again", v1alpha1.RerunAnnotation+"=monday")
	b.Kubectl("wait", "--for=jsonpath={.status.rerun}=monday", "htcjob/again", "--timeout="+trial.Patience.String())
	b.Kubectl("wait", "--for=condition=Complete", "htcjob/again", "--timeout="+trial.Patience.String())
	job = b.Get("again")
	require.EqualValues(t, 3, job.Status.Attempt)
	require.Equal(t, job.Generation, job.Status.ObservedGeneration)
	b.Kubectl("annotate", "htcjob", "again", "another=annotation")
	b.Script("after", "exit 0\n")
	b.Ended("after")
	require.EqualValues(t, 3, b.Get("again").Status.Attempt)
}

func TestALargeQueueIsToldInAFewEvents(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("many", "exit $(( $1 % 2 ))\n", trial.Queue(20))
	b.Ended("many")
	told(b, "many", "Failed", "10 of 20 jobs failed")
	events := strings.Fields(b.Kubectl("get", "events.events.k8s.io", "-o", `jsonpath={.items[*].reason}`))
	require.LessOrEqual(t, len(events), 12, "%v", events)
	// On a busy machine jobs are idle again and again, and the first failure may be known with the last end only.
	once := slices.DeleteFunc(slices.Clone(events), func(reason string) bool { return reason == "Idle" })
	slices.Sort(once)
	require.Contains(t, [][]string{{"Failed"}, {"Failed", "JobFailed"}}, once)
}

func TestKubectlGetFitsTheTerminal(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("analysis-of-2026-aaa", "exit 0\n", trial.Queue(3))
	b.Script("analysis-of-2026-bbb", "exit 1\n", trial.Queue(3))
	b.Script("analysis-of-2026-ccc", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.Suspend = true })
	b.Script(
		"analysis-of-2026-ddd",
		"exit 0\n",
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "executable = /bin/id\n" },
	)
	b.Ended("analysis-of-2026-aaa")
	b.Ended("analysis-of-2026-bbb")
	b.Ended("analysis-of-2026-ddd")
	for columns, args := range map[int][]string{80: nil, 170: {"-o", "wide"}} {
		out := b.Kubectl(append([]string{"get", "htcjob"}, args...)...)
		for line := range strings.Lines(out) {
			require.LessOrEqual(t, len(strings.TrimRight(line, " \n")), columns, out)
		}
		require.NotContains(t, out, "<")
	}
	require.Regexp(t, `bbb .* Failed +\d+s`, b.Kubectl("get", "htcjob", "-o", "wide"))
}

// The CRD's initial status is not htcd's. A submission that takes longer than a second is reported before its end, so
// that on a busy machine not every one is as quick as this test requires.
func TestTheFirstStatusOfAQuickSubmissionNamesItsJobs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	events, err := b.Jobs.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer events.Stop()
	late := time.After(trial.Patience)
	for i := 0; ; i++ {
		name := fmt.Sprintf("quick-%d", i)
		b.Create(name, "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "requirements = false\n" })
		var first *v1alpha1.HTCJob
		for first == nil {
			select {
			case event := <-events.ResultChan():
				job, is := event.Object.(*v1alpha1.HTCJob)
				require.True(t, is, "%+v", event)
				if job.Name == name && job.Status.ObservedGeneration > 0 {
					first = job
				}
			case <-late:
				require.FailNow(t, "the first status never had the ids of the jobs")
			}
		}
		if len(first.Status.JobID) > 0 {
			return
		}
	}
}
