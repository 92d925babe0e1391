package e2e

import (
	"context"
	"encoding/base64"
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

func TestExamplesRunToTheirEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, name        string
		succeeded, failed int32
	}{
		{"retcode/zero.yaml", "zero", 1, 0},
		{"retcode/notzero.yaml", "notzero", 0, 1},
		{"queue.yaml", "queue", 3, 0},
		{"command/python.yaml", "python", 1, 0},
		{"resources.yaml", "resources", 1, 0},
		{"retries.yaml", "retries", 1, 0},
		{"logspod.yaml", "logspod", 2, 0},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			b := trial.New(t)
			b.Apply(c.file)
			job := b.Ended(c.name)
			require.EqualValues(
				t,
				[]int32{0, c.succeeded, c.failed},
				[]int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed},
			)
			require.Equal(t, v1alpha1.JobIDs(int(job.Status.ClusterID), job.Queue()), job.Status.JobID)
			require.Equal(t, job.Generation, job.Status.ObservedGeneration)
			switch c.name {
			case "queue":
				for proc := range 3 {
					require.Equal(t, fmt.Sprintf("I am number %d\n", proc), b.Output(job, proc))
				}
			case "python":
				require.Regexp(t, `^python 3\.\d+\.\d+\S* runs number 0\n$`, b.Output(job, 0))
			}
		})
	}
}

func TestExitCodesAgreeWithHTCondor(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("odd", "test \"$HTCPROCID\" = \"$1\" || exit 99\nexit $(( $1 % 2 * (10 + $1) ))\n", trial.Queue(5))
	job := b.Ended("odd")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.EqualValues(t, []int32{0, 3, 2}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
	id := func(proc int) string { return fmt.Sprintf("%d.%d", job.Status.ClusterID, proc) }
	require.Equal(t, []v1alpha1.Failure{
		{JobID: id(1), Proc: new(int32(1)), ExitCode: new(int32(11)), Reason: "ExitCode", Message: "exit code 11"},
		{JobID: id(3), Proc: new(int32(3)), ExitCode: new(int32(13)), Reason: "ExitCode", Message: "exit code 13"},
	}, job.Status.Failures)

	// Once their output is fetched they enter the history, where the ad says the same.
	b.Eventually(func() bool { return len(b.Condor("condor_history", trial.Tagged(job), "ExitCode")) == 5 },
		func() string { return "the jobs never reached the history" })
	require.ElementsMatch(
		t,
		[]string{id(0) + " 0 false", id(1) + " 11 false", id(2) + " 0 false", id(3) + " 13 false", id(4) + " 0 false"},
		b.Condor("condor_history", trial.Tagged(job), "ExitCode", "ExitBySignal"),
	)
	require.Equal(t, "4 7 4 7 4", b.SQL(fmt.Sprintf(
		"SELECT group_concat(status, ' ') FROM (SELECT status FROM htcjobs WHERE jobId LIKE '%d.%%' AND htcjobName = 'odd' ORDER BY proc)",
		job.Status.ClusterID,
	)))
}

func TestAnEndedHTCJobReadsWell(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("shown", "exit 0\n")
	job := b.Ended("shown")
	lines := strings.Split(b.Kubectl("get", "htcj"), "\n")
	require.Equal(
		t,
		[]string{"NAME", "PHASE", "ACTIVE", "SUCCEEDED", "FAILED", "JOBID", "AGE"},
		strings.Fields(lines[0]),
	)
	require.Equal(t, []string{"shown", "Succeeded", "0", "1", "0", job.Status.JobID[0]}, strings.Fields(lines[1])[:6])
	require.Contains(t, b.Kubectl("get", "htcjob", "-o", "wide"), job.Status.Schedd)
	b.Kubectl("wait", "--for=condition=Complete", "htcjob/shown", "--timeout="+trial.Patience.String())
}

func TestDeletingARunningHTCJobRemovesItsJobs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("long", "sleep 1000\n", trial.Queue(2))
	job := b.Phase("long", v1alpha1.PhaseRunning)
	b.Eventually(func() bool {
		return len(b.Condor("condor_q", trial.Tagged(job)+" && JobStatus == 2", "JobStatus")) == 2
	},
		func() string { return "two jobs never ran" })
	b.Kubectl("delete", "htcjob", "long", "--timeout="+trial.Patience.String())
	require.Empty(t, b.Condor("condor_q", trial.Tagged(job), "JobStatus"))
	require.Equal(t, "0", b.SQL("SELECT count(*) FROM runs WHERE uid = '"+string(job.UID)+"'"))
	staged, err := filepath.Glob(b.Lab.Path("htcd", "data", "staging", string(job.UID)+"*"))
	require.NoError(t, err)
	require.Empty(t, staged)
}

func TestBrokenHtcoptsAreExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ htcopts, says string }{
		"an expression that does not parse": {"request_memory = 1GB\nrequirements = (((\n", "line 2"},
		"a command that is htcd's own":      {"executable = /bin/sh\n", "spec.script.source"},
		"what the schedd's site refuses":    {"+ProjectName = \"forbidden\"\n", "the project forbidden may not run here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := trial.New(t)
			options := func(text string) func(*v1alpha1.HTCJob) {
				return func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = text }
			}
			b.Script("broken", "exit 0\n", options(c.htcopts))
			job := b.Phase("broken", v1alpha1.PhaseFailed)
			require.EqualValues(t, 1, job.Status.Failed)
			require.Equal(t, "Refused", b.Condition(job, v1alpha1.ConditionSubmitted).Reason)
			require.Contains(t, b.Condition(job, v1alpha1.ConditionSubmitted).Message, c.says)
			b.Eventually(func() bool {
				_, events, _ := strings.Cut(b.Kubectl("describe", "htcjob", "broken"), "\nEvents:")
				return strings.Contains(events, "Refused") && strings.Contains(events, c.says)
			}, func() string { return b.Kubectl("describe", "htcjob", "broken") })

			b.Script("broken", "exit 0\n", options("request_disk = 100\n"))
			mended := b.Until("broken", "run again", func(job *v1alpha1.HTCJob) bool {
				return job.Status.Attempt == 2 && job.Status.Phase.Terminal()
			})
			require.Equal(t, v1alpha1.PhaseSucceeded, mended.Status.Phase)
		})
	}
}

// All tests share the Secret, so this one runs alone.
func TestAWrongPasswordIsExplainedAndMendingTheSecretIsEnough(t *testing.T) {
	b := trial.New(t)
	write := func(ctx context.Context, encoded string) {
		b.InDefault(ctx, "patch", "secret", "kinit-secret", "-p", `{"data":{"password":"`+encoded+`"}}`)
	}
	right := b.InDefault(t.Context(), "get", "secret", "kinit-secret", "-o", "jsonpath={.data.password}")
	t.Cleanup(func() { write(context.WithoutCancel(t.Context()), right) })
	write(t.Context(), base64.StdEncoding.EncodeToString([]byte("not it")))

	// Secrets and HTCJobs arrive by separate watches: an HTCJob that arrives first still uses the old ticket.
	var name string
	refused := func() bool {
		c := meta.FindStatusCondition(b.Get(name).Status.Conditions, v1alpha1.ConditionCredentials)
		return c != nil && c.Status == metav1.ConditionFalse
	}
	for i := 0; name == "" || !refused(); i++ {
		name = fmt.Sprintf("try-%d", i)
		b.Script(name, "exit 0\n")
		b.Until(name, "submitted or refused", func(job *v1alpha1.HTCJob) bool {
			return len(job.Status.JobID) > 0 || refused()
		})
	}
	job := b.Get(name)
	require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
	require.Equal(t, "BadPassword", b.Condition(job, v1alpha1.ConditionCredentials).Reason)
	require.Contains(t, b.Kubectl("describe", "htcjob", name), "BadPassword")

	write(t.Context(), right)
	require.Equal(t, v1alpha1.PhaseSucceeded, b.Ended(name).Status.Phase)
}

// All tests share htcd's flags, so this one runs alone.
func TestAShippedSenderCallsBackWhereTheNodeHasNoOther(t *testing.T) {
	b := trial.New(t)
	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Restart(t.Context(), "--ship-sender="+b.Lab.Path("htcd", "bin", "htcd")))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	// One that the script puts in its place does not run: it would report nothing.
	b.Script("shipped", "printf '#!/bin/sh\\nexit 0\\n' > htcd-send; chmod 755 htcd-send; exit 7\n")
	job := b.Ended("shipped")
	require.EqualValues(t, 7, *job.Status.Failures[0].ExitCode)
	require.Equal(t, "callback", b.Source(job))
}

func TestTheWrapperCallsBackByItself(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("plain", "exit 7\n")
	job := b.Ended("plain")
	require.EqualValues(t, 7, *job.Status.Failures[0].ExitCode)
	require.Equal(t, "callback", b.Source(job))
}
