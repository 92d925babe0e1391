package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
)

// patience is how long a test waits for something that takes seconds on an idle machine.
const patience = 2 * time.Minute

// bench is one test's place in the running lab: a namespace of its own.
type bench struct {
	t         *testing.T
	lab       *lab.Lab
	namespace string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	return &bench{t, running, ownNamespace(t)}
}

// kubectl runs kubectl in the test's namespace and returns what it prints.
func (b *bench) kubectl(args ...string) string {
	b.t.Helper()
	out, err := b.lab.Run(b.t.Context(), "kubectl", append([]string{"-n", b.namespace}, args...)...)
	require.NoError(b.t, err)
	return out
}

// apply applies a manifest of the examples directory.
func (b *bench) apply(example string) {
	b.t.Helper()
	path, err := filepath.Abs(filepath.Join("../../examples", example))
	require.NoError(b.t, err)
	b.kubectl("apply", "-f", path)
}

// script applies an HTCJob of the image centos; change may do more to it.
func (b *bench) script(name, source string, change ...func(*v1alpha1.HTCJob)) {
	b.t.Helper()
	job := &v1alpha1.HTCJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.HTCJobSpec{Script: v1alpha1.Script{Image: "centos", Command: "bash", Source: source}},
	}
	for _, f := range change {
		f(job)
	}
	text, err := json.Marshal(job)
	require.NoError(b.t, err)
	var object map[string]any
	require.NoError(b.t, json.Unmarshal(text, &object))
	delete(object, "status")
	text, err = json.Marshal(object)
	require.NoError(b.t, err)
	_, err = b.lab.RunInput(b.t.Context(), string(text), "kubectl", "-n", b.namespace, "apply", "-f", "-")
	require.NoError(b.t, err)
}

func queue(n int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Script.Queue = &n }
}

func (b *bench) get(name string) *v1alpha1.HTCJob {
	b.t.Helper()
	var job v1alpha1.HTCJob
	require.NoError(b.t, json.Unmarshal([]byte(b.kubectl("get", "htcjob", name, "-o", "json")), &job))
	return &job
}

// until waits until the HTCJob is as wanted and returns it.
func (b *bench) until(name, wanted string, is func(*v1alpha1.HTCJob) bool) *v1alpha1.HTCJob {
	b.t.Helper()
	var job *v1alpha1.HTCJob
	b.eventually(func() bool { job = b.get(name); return is(job) }, func() string {
		return fmt.Sprintf("%s never was %s:\n%s", name, wanted, b.kubectl("describe", "htcjob", name))
	})
	return job
}

func (b *bench) phase(name string, phase v1alpha1.Phase) *v1alpha1.HTCJob {
	b.t.Helper()
	return b.until(name, string(phase), func(job *v1alpha1.HTCJob) bool { return job.Status.Phase == phase })
}

func (b *bench) ended(name string) *v1alpha1.HTCJob {
	b.t.Helper()
	return b.until(name, "ended", func(job *v1alpha1.HTCJob) bool { return job.Status.Phase.Terminal() })
}

// eventually asks again until it holds; what says why it matters when it never did.
func (b *bench) eventually(holds func() bool, what func() string) {
	b.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for tick := time.NewTicker(200 * time.Millisecond); !holds(); {
		select {
		case <-tick.C:
		case <-deadline.C:
			require.FailNow(b.t, what())
		}
	}
}

func (b *bench) condition(job *v1alpha1.HTCJob, kind string) metav1.Condition {
	b.t.Helper()
	c := meta.FindStatusCondition(job.Status.Conditions, kind)
	require.NotNil(b.t, c, "condition %s", kind)
	return *c
}

// condor asks the queue or the history for attributes of jobs: a line each, which begins with the job's id.
func (b *bench) condor(tool, constraint string, attributes ...string) []string {
	b.t.Helper()
	args := append([]string{"-constraint", constraint, "-af", `strcat(ClusterId, ".", ProcId)`}, attributes...)
	if tool == "condor_q" {
		args = append([]string{"-allusers"}, args...)
	}
	out, err := b.lab.Run(b.t.Context(), tool, args...)
	require.NoError(b.t, err)
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
}

func tagged(job *v1alpha1.HTCJob) string { return fmt.Sprintf("HTCJobUID == %q", job.UID) }

// output reads what a job wrote from the schedd's spool.
func (b *bench) output(job *v1alpha1.HTCJob, proc int) string {
	b.t.Helper()
	pattern := b.lab.Path("condor", "spool", "*", "*", fmt.Sprintf("cluster%d.proc%d.subproc0", job.Status.ClusterID, proc), fmt.Sprintf("out.%d", proc))
	found, err := filepath.Glob(pattern)
	require.NoError(b.t, err)
	require.Len(b.t, found, 1, pattern)
	text, err := os.ReadFile(found[0])
	require.NoError(b.t, err)
	return string(text)
}

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
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.apply(c.file)
			job := b.ended(c.name)
			require.EqualValues(t, []int32{0, c.succeeded, c.failed}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
			require.Equal(t, v1alpha1.JobIDs(int(job.Status.ClusterID), job.Queue()), job.Status.JobID)
			require.Equal(t, job.Generation, job.Status.ObservedGeneration)
			switch c.name {
			case "queue":
				for proc := range 3 {
					require.Equal(t, fmt.Sprintf("I am number %d\n", proc), b.output(job, proc))
				}
			case "python":
				require.Regexp(t, `^python 3\.\d+\.\d+\S* runs number 0\n$`, b.output(job, 0))
			}
		})
	}
}

func TestExitCodesAgreeWithHTCondor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.script("odd", "test \"$HTCPROCID\" = \"$1\" || exit 99\nexit $(( $1 % 2 * (10 + $1) ))\n", queue(5))
	job := b.ended("odd")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.EqualValues(t, []int32{0, 3, 2}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
	id := func(proc int) string { return fmt.Sprintf("%d.%d", job.Status.ClusterID, proc) }
	require.Equal(t, []v1alpha1.Failure{
		{JobID: id(1), ExitCode: new(int32(11)), Reason: "ExitCode", Message: "exit code 11"},
		{JobID: id(3), ExitCode: new(int32(13)), Reason: "ExitCode", Message: "exit code 13"},
	}, job.Status.Failures)

	// Out of the queue and into the history, where the ad says the same.
	b.eventually(func() bool { return len(b.condor("condor_q", tagged(job)+" && JobStatus == 4", "JobStatus")) == 5 },
		func() string { return "the jobs never completed in the queue" })
	_, err := b.lab.Run(t.Context(), "condor_rm", "-constraint", tagged(job))
	require.NoError(t, err)
	b.eventually(func() bool { return len(b.condor("condor_history", tagged(job), "ExitCode")) == 5 },
		func() string { return "the jobs never reached the history" })
	require.ElementsMatch(t, []string{id(0) + " 0 false", id(1) + " 11 false", id(2) + " 0 false", id(3) + " 13 false", id(4) + " 0 false"},
		b.condor("condor_history", tagged(job), "ExitCode", "ExitBySignal"))
	rows, err := b.lab.Run(t.Context(), "sqlite3", b.lab.Ledger(),
		fmt.Sprintf("SELECT group_concat(status, ' ') FROM (SELECT status FROM htcjobs WHERE jobId LIKE '%d.%%' AND htcjobName = 'odd' ORDER BY proc)", job.Status.ClusterID))
	require.NoError(t, err)
	require.Equal(t, "4 7 4 7 4", strings.TrimSpace(rows))
}

func TestAnEndedHTCJobReadsWell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.script("shown", "exit 0\n")
	job := b.ended("shown")
	lines := strings.Split(b.kubectl("get", "htcj"), "\n")
	require.Equal(t, []string{"NAME", "PHASE", "ACTIVE", "SUCCEEDED", "FAILED", "JOBID", "AGE"}, strings.Fields(lines[0]))
	require.Equal(t, []string{"shown", "Succeeded", "0", "1", "0", job.Status.JobID[0]}, strings.Fields(lines[1])[:6])
	require.Contains(t, b.kubectl("get", "htcjob", "-o", "wide"), job.Status.Schedd)
	b.kubectl("wait", "--for=condition=Complete", "htcjob/shown", "--timeout=10s")
}

func TestDeletingARunningHTCJobRemovesItsJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.script("long", "sleep 1000\n", queue(2))
	job := b.phase("long", v1alpha1.PhaseRunning)
	b.eventually(func() bool { return len(b.condor("condor_q", tagged(job)+" && JobStatus == 2", "JobStatus")) == 2 },
		func() string { return "two jobs never ran" })
	b.kubectl("delete", "htcjob", "long", "--timeout=60s")
	require.Empty(t, b.condor("condor_q", tagged(job), "JobStatus"))
	rows, err := b.lab.Run(t.Context(), "sqlite3", b.lab.Ledger(), "SELECT count(*) FROM runs WHERE uid = '"+string(job.UID)+"'")
	require.NoError(t, err)
	require.Equal(t, "0", strings.TrimSpace(rows))
	staged, err := filepath.Glob(b.lab.Path("htcd", "data", "staging", string(job.UID)+"*"))
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
			b := newBench(t)
			options := func(text string) func(*v1alpha1.HTCJob) {
				return func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = text }
			}
			b.script("broken", "exit 0\n", options(c.htcopts))
			job := b.phase("broken", v1alpha1.PhaseFailed)
			require.EqualValues(t, 1, job.Status.Failed)
			require.Equal(t, "Refused", b.condition(job, v1alpha1.ConditionSubmitted).Reason)
			require.Contains(t, b.condition(job, v1alpha1.ConditionSubmitted).Message, c.says)
			b.eventually(func() bool {
				_, events, _ := strings.Cut(b.kubectl("describe", "htcjob", "broken"), "\nEvents:")
				return strings.Contains(events, "Refused") && strings.Contains(events, c.says)
			}, func() string { return b.kubectl("describe", "htcjob", "broken") })

			b.script("broken", "exit 0\n", options("request_disk = 100\n"))
			mended := b.until("broken", "run again", func(job *v1alpha1.HTCJob) bool {
				return job.Status.Attempt == 2 && job.Status.Phase.Terminal()
			})
			require.Equal(t, v1alpha1.PhaseSucceeded, mended.Status.Phase)
		})
	}
}

// The Secret is everybody's: this test runs alone.
func TestAWrongPasswordIsExplainedAndMendingTheSecretIsEnough(t *testing.T) {
	b := newBench(t)
	secret := func(ctx context.Context, args ...string) string {
		out, err := b.lab.Run(ctx, "kubectl", append([]string{"-n", "default"}, args...)...)
		require.NoError(t, err)
		return out
	}
	write := func(ctx context.Context, encoded string) {
		secret(ctx, "patch", "secret", "kinit-secret", "-p", `{"data":{"password":"`+encoded+`"}}`)
	}
	right := secret(t.Context(), "get", "secret", "kinit-secret", "-o", "jsonpath={.data.password}")
	t.Cleanup(func() { write(context.WithoutCancel(t.Context()), right) })
	write(t.Context(), base64.StdEncoding.EncodeToString([]byte("not it")))

	// Secret and HTCJobs come by two watches: an HTCJob that was quicker still goes with the old ticket.
	var name string
	refused := func() bool {
		c := meta.FindStatusCondition(b.get(name).Status.Conditions, v1alpha1.ConditionCredentials)
		return c != nil && c.Status == metav1.ConditionFalse
	}
	for i := 0; name == "" || !refused(); i++ {
		name = fmt.Sprintf("try-%d", i)
		b.script(name, "exit 0\n")
		b.until(name, "submitted or refused", func(job *v1alpha1.HTCJob) bool {
			return len(job.Status.JobID) > 0 || refused()
		})
	}
	job := b.get(name)
	require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
	require.Equal(t, "BadPassword", b.condition(job, v1alpha1.ConditionCredentials).Reason)
	require.Contains(t, b.kubectl("describe", "htcjob", name), "BadPassword")

	write(t.Context(), right)
	require.Equal(t, v1alpha1.PhaseSucceeded, b.ended(name).Status.Phase)
}

// The flags of htcd are everybody's: this test runs alone.
func TestAShippedSenderCallsBackWhereTheNodeHasNoOther(t *testing.T) {
	b := newBench(t)
	htcd := b.lab.Part("htcd")
	require.NoError(t, htcd.Restart(t.Context(), "--ship-sender="+b.lab.Path("htcd", "bin", "htcd")))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	b.script("shipped", "exit 7\n")
	job := b.ended("shipped")
	require.EqualValues(t, 7, *job.Status.Failures[0].ExitCode)
	require.Equal(t, "callback", b.source(job))
}

func TestTheWrapperCallsBackByItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.script("plain", "exit 7\n")
	job := b.ended("plain")
	require.EqualValues(t, 7, *job.Status.Failures[0].ExitCode)
	require.Equal(t, "callback", b.source(job))
}

// source is who ended the HTCJob's first proc: a callback comes seconds before a cross-check could.
func (b *bench) source(job *v1alpha1.HTCJob) string {
	b.t.Helper()
	log, err := os.ReadFile(b.lab.Log("htcd"))
	require.NoError(b.t, err)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"repaired"`) && strings.Contains(line, `"`+job.Status.JobID[0]+`"`) {
			return "crosscheck"
		}
	}
	return "callback"
}
