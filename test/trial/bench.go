package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/test/lab"
)

// Patience is how long a test waits for something that takes seconds on an idle machine. It is the one limit of all
// tests: what it is ten minutes for takes as long where a process starts in 8 ms and forty others want the processor.
const Patience = 10 * time.Minute

// Bench is one test's namespace in the running lab.
type Bench struct {
	T         *testing.T
	Lab       *lab.Lab
	Namespace string
	Jobs      v1alpha1.Interface // of the namespace, with an administrator's rights
}

// New creates a Bench, which is removed at the end of the test.
func New(t *testing.T) *Bench {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	namespace := Namespace(t)
	client, err := v1alpha1.NewClient(Config(t))
	require.NoError(t, err)
	return &Bench{t, running, namespace, client.HTCJobs(namespace)}
}

// Kubectl runs kubectl in the test's namespace and returns what it prints.
func (b *Bench) Kubectl(args ...string) string {
	b.T.Helper()
	out, err := b.Lab.Run(b.T.Context(), "kubectl", append([]string{"-n", b.Namespace}, args...)...)
	require.NoError(b.T, err)
	return out
}

// InDefault runs kubectl in the namespace default, where the Secrets of the lab's accounts are.
func (b *Bench) InDefault(ctx context.Context, args ...string) string {
	b.T.Helper()
	out, err := b.Lab.Run(ctx, "kubectl", append([]string{"-n", "default"}, args...)...)
	require.NoError(b.T, err)
	return out
}

// Apply applies a manifest of the examples directory.
func (b *Bench) Apply(example string) {
	b.T.Helper()
	path, err := filepath.Abs(filepath.Join("../../examples", example))
	require.NoError(b.T, err)
	b.Kubectl("apply", "-f", path)
}

// ApplyText applies a manifest.
func (b *Bench) ApplyText(manifest string) {
	b.T.Helper()
	_, err := b.Lab.RunInput(b.T.Context(), manifest, "kubectl", "-n", b.Namespace, "apply", "-f", "-")
	require.NoError(b.T, err)
}

// Script applies an HTCJob with the image centos after change has edited it.
func (b *Bench) Script(name, source string, change ...func(*v1alpha1.HTCJob)) {
	b.T.Helper()
	text, err := json.Marshal(Manifest(name, source, change...))
	require.NoError(b.T, err)
	var object map[string]any
	require.NoError(b.T, json.Unmarshal(text, &object))
	delete(object, "status")
	text, err = json.Marshal(object)
	require.NoError(b.T, err)
	b.ApplyText(string(text))
}

// Create is Script for a new HTCJob, without the tens of milliseconds that kubectl takes.
func (b *Bench) Create(name, source string, change ...func(*v1alpha1.HTCJob)) *v1alpha1.HTCJob {
	b.T.Helper()
	job, err := b.Jobs.Create(b.T.Context(), Manifest(name, source, change...), metav1.CreateOptions{})
	require.NoError(b.T, err)
	return job
}

// Manifest returns an HTCJob with the image centos.
func Manifest(name, source string, change ...func(*v1alpha1.HTCJob)) *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.HTCJobSpec{
			Script: v1alpha1.Script{Program: v1alpha1.Program{Image: "centos", Command: "bash", Source: source}},
		},
	}
	for _, f := range change {
		f(job)
	}
	return job
}

// Queue sets the number of jobs of an HTCJob.
func Queue(n int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Script.Queue = &n }
}

// Unpacked gives an HTCJob an image that is a directory on the node. The lab keeps the registry's images unpacked for
// robot and alice only; for other accounts each job would take seconds.
func Unpacked(job *v1alpha1.HTCJob) {
	job.Spec.Script.Image, job.Spec.Script.Command = "/opt/image/busybox", "sh"
}

// Get reads an HTCJob.
func (b *Bench) Get(name string) *v1alpha1.HTCJob {
	b.T.Helper()
	job, err := b.Jobs.Get(b.T.Context(), name, metav1.GetOptions{})
	require.NoError(b.T, err)
	return job
}

// Until waits until the HTCJob satisfies a condition and returns it.
func (b *Bench) Until(name, wanted string, is func(*v1alpha1.HTCJob) bool) *v1alpha1.HTCJob {
	b.T.Helper()
	var job *v1alpha1.HTCJob
	b.Eventually(func() bool { job = b.Get(name); return is(job) }, func() string {
		return fmt.Sprintf("%s never was %s:\n%s", name, wanted, b.Kubectl("describe", "htcjob", name))
	})
	return job
}

// Phase waits for a phase.
func (b *Bench) Phase(name string, phase v1alpha1.Phase) *v1alpha1.HTCJob {
	b.T.Helper()
	return b.Until(name, string(phase), func(job *v1alpha1.HTCJob) bool { return job.Status.Phase == phase })
}

// Ended waits for a terminal phase.
func (b *Bench) Ended(name string) *v1alpha1.HTCJob {
	b.T.Helper()
	return b.Until(name, "ended", func(job *v1alpha1.HTCJob) bool { return job.Status.Phase.Terminal() })
}

// Eventually repeats a check until it holds; what is the failure's message. It rests for longer than the check took, so
// that tests that wait leave most of a slow machine to what they wait for.
func (b *Bench) Eventually(holds func() bool, what func() string) {
	b.T.Helper()
	for deadline := time.Now().Add(Patience); ; {
		began := time.Now()
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(b.T, what())
		}
		time.Sleep(max(200*time.Millisecond, 2*time.Since(began)))
	}
}

// Event waits for an Event of an object with a text in it.
func (b *Bench) Event(object, text string) {
	b.T.Helper()
	client, err := kubernetes.NewForConfig(Config(b.T))
	require.NoError(b.T, err)
	of := metav1.ListOptions{FieldSelector: "involvedObject.name=" + object}
	b.Eventually(func() bool {
		list, err := client.CoreV1().Events(b.Namespace).List(b.T.Context(), of)
		return err == nil && slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return strings.Contains(e.Reason+" "+e.Message, text)
		})
	}, func() string {
		return fmt.Sprintf(
			"no Event of %s says %q:\n%s",
			object,
			text,
			b.Kubectl("get", "events", "--field-selector="+of.FieldSelector),
		)
	})
}

// Condition returns a condition that must exist.
func (b *Bench) Condition(job *v1alpha1.HTCJob, kind string) metav1.Condition {
	b.T.Helper()
	c := meta.FindStatusCondition(job.Status.Conditions, kind)
	require.NotNil(b.T, c, "condition %s", kind)
	return *c
}

// SQL runs a statement on the ledger in the sqlite3 shell, which waits for locks, and returns its output.
func (b *Bench) SQL(statement string) string {
	b.T.Helper()
	out, err := b.Lab.Run(b.T.Context(), "sqlite3", "-cmd", ".timeout 10000", b.Lab.Ledger(), statement)
	require.NoError(b.T, err)
	return strings.TrimSpace(out)
}

// Condor asks the queue or the history for attributes of jobs. Each line of the answer begins with the job's id.
func (b *Bench) Condor(tool, constraint string, attributes ...string) []string {
	b.T.Helper()
	args := append([]string{"-constraint", constraint, "-af", `strcat(ClusterId, ".", ProcId)`}, attributes...)
	if tool == "condor_q" {
		args = append([]string{"-allusers"}, args...)
	}
	out, err := b.Lab.Run(b.T.Context(), tool, args...)
	require.NoError(b.T, err)
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
}

// Queued lists jobs in the queue, but those that are on their way out: a schedd keeps what was removed until its shadow
// has ended.
func (b *Bench) Queued(constraint string) []string {
	b.T.Helper()
	return b.Condor("condor_q", "("+constraint+") && JobStatus != 3", "JobStatus")
}

// Ads asks the queue and then the history. A job that leaves the queue in between is in both; what the history says of
// it is later, and counts.
func (b *Bench) Ads(constraint string, attributes ...string) []string {
	b.T.Helper()
	ads := map[string]string{}
	for _, tool := range []string{"condor_q", "condor_history"} {
		for _, line := range b.Condor(tool, constraint, attributes...) {
			id, _, _ := strings.Cut(line, " ")
			ads[id] = line
		}
	}
	return slices.Sorted(maps.Values(ads))
}

// Tagged returns the constraint that matches the jobs of an HTCJob.
func Tagged(job *v1alpha1.HTCJob) string { return fmt.Sprintf("HTCJobUID == %q", job.UID) }

// Output waits for a job's standard output in htcd's store and returns it.
func (b *Bench) Output(job *v1alpha1.HTCJob, proc int) string {
	b.T.Helper()
	return b.File(job, proc, output.Stdout)
}

// File is Output for any file of the job.
func (b *Bench) File(job *v1alpha1.HTCJob, proc int, name string) string {
	b.T.Helper()
	job = b.Fetched(job.Name)
	text, err := os.ReadFile(filepath.Join(b.Kept(job), fmt.Sprint(proc), name))
	require.NoError(b.T, err)
	return string(text)
}

// Files lists the paths of all files that a job left behind.
func (b *Bench) Files(job *v1alpha1.HTCJob, proc int) (files []string) {
	b.T.Helper()
	dir := filepath.Join(b.Kept(b.Fetched(job.Name)), fmt.Sprint(proc))
	require.NoError(b.T, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, name)
		return err
	}))
	return files
}

// Kept returns the directory in which htcd keeps the output of an attempt.
func (b *Bench) Kept(job *v1alpha1.HTCJob) string {
	return b.Lab.Path("htcd", "data", "out", job.Namespace, job.Name, fmt.Sprint(job.Status.Attempt))
}

// Fetched waits until an HTCJob has ended and all its output has been fetched.
func (b *Bench) Fetched(name string) *v1alpha1.HTCJob {
	b.T.Helper()
	return b.Until(name, "fetched", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Phase.Terminal() &&
			meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	})
}

// Source returns what reported the end of the HTCJob's first proc: a callback arrives seconds before a cross-check
// could.
func (b *Bench) Source(job *v1alpha1.HTCJob) string {
	b.T.Helper()
	log, err := os.ReadFile(b.Lab.Log("htcd"))
	require.NoError(b.T, err)
	which := fmt.Sprintf(
		`"job":"%s/%s","jobid":"%s"`,
		job.Namespace,
		job.Name,
		job.Status.JobID[0],
	) // two schedds have the same numbers
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"repaired"`) && strings.Contains(line, which) {
			return "crosscheck"
		}
	}
	return "callback"
}
