package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func inputs(list ...v1alpha1.Input) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Inputs = list }
}

func fromMap(name, object, key string) v1alpha1.Input {
	return v1alpha1.Input{Name: name, ConfigMapKeyRef: &v1alpha1.KeyRef{Name: object, Key: key}}
}

func fromSecret(name, object, key string) v1alpha1.Input {
	return v1alpha1.Input{Name: name, SecretKeyRef: &v1alpha1.KeyRef{Name: object, Key: key}}
}

// fromJob names a file of an HTCJob; proc is a number, Same, All or nil.
func fromJob(name, job, path string, proc any) v1alpha1.Input {
	ref := &v1alpha1.JobRef{Name: job, Path: path}
	switch p := proc.(type) {
	case int:
		ref.Proc = new(intstr.FromInt32(int32(p)))
	case string:
		ref.Proc = new(intstr.FromString(p))
	}
	return v1alpha1.Input{Name: name, JobRef: ref}
}

// file is an input as a manifest has it; pairs are the fields of its source.
func file(name, source string, pairs ...any) map[string]any {
	ref := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		ref[pairs[i].(string)] = pairs[i+1]
	}
	return map[string]any{"name": name, source: ref}
}

// united is one input with the sources of two.
func united(a, b map[string]any) map[string]any {
	maps.Copy(a, b)
	return a
}

// files are so many inputs.
func files(n int) []map[string]any {
	var all []map[string]any
	for i := range n {
		all = append(all, file(fmt.Sprint("a", i), "configMapKeyRef", "name", "x", "key", "x"))
	}
	return all
}

func inputList(all ...map[string]any) change {
	list := make([]any, len(all))
	for i, in := range all {
		list[i] = in
	}
	return set("inputs", list)
}

// marked makes a Secret that jobs may have.
func marked(b *trial.Bench, name string, literals ...string) {
	b.T.Helper()
	args := []string{"create", "secret", "generic", name}
	for _, literal := range literals {
		args = append(args, "--from-literal="+literal)
	}
	b.Kubectl(args...)
	b.Kubectl("label", "secret", name, "htc.cern.ch/jobs=true")
}

func awaits(b *trial.Bench, name, reason string) string {
	b.T.Helper()
	job := b.Until(name, "waiting: "+reason, func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == reason })
	require.Equal(b.T, v1alpha1.PhasePending, job.Status.Phase)
	require.Zero(b.T, job.Status.ClusterID)
	ready, submitted := b.Condition(job, v1alpha1.ConditionInputsReady), b.Condition(job, v1alpha1.ConditionSubmitted)
	require.Equal(
		b.T,
		[]string{"False", reason, ready.Message},
		[]string{string(submitted.Status), submitted.Reason, submitted.Message},
	)
	return ready.Message
}

// The chain in the order in which nothing is there yet.
func TestAChainOfHTCJobs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script(
		"merge",
		`ls -R hist; cat hist/0 hist/1 hist/2 > all; [ ! -e hist/3 ]`+"\n",
		inputs(fromJob("hist", "fit", "out/hist", "All"), fromJob("log", "fit", "_condor_stdout", 2)),
	)
	b.Script(
		"fit",
		`set -e
stat -c '%a %n' fit.yaml db.pass hist.root data.bin
[ "$(cat db.pass)" = s3cret ]
mkdir out; cat fit.yaml hist.root > out/hist
echo changed >> fit.yaml; touch db.pass; cp db.pass pass.copied; rm pass.copied`+"\n",
		trial.Queue(3),
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "transfer_output_files = out\n" },
		inputs(
			fromMap("fit.yaml", "fit", "fit.yaml"),
			fromMap("data.bin", "fit", "data"),
			fromSecret("db.pass", "db", "password"),
			fromJob("hist.root", "prep", "hist.root", "Same"),
		),
	)
	awaits(b, "merge", "HTCJobNotEnded")
	require.Equal(t, "fit.yaml: there is no configmap fit in this namespace", awaits(b, "fit", "ConfigMapNotFound"))
	binary := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(binary, []byte{0, 0xff, '\n'}, 0o600))
	b.Kubectl("create", "configmap", "fit", "--from-literal=fit.yaml=energy: 13\n", "--from-file=data="+binary)
	marked(b, "db", "password=s3cret")
	awaits(b, "fit", "HTCJobNotFound")
	b.Script("prep", `echo "histogram $1" > hist.root`+"\n", trial.Queue(3))

	merge := b.Fetched("merge")
	require.Equal(t, v1alpha1.PhaseSucceeded, merge.Status.Phase)
	require.Equal(
		t,
		"energy: 13\nhistogram 0\nenergy: 13\nhistogram 1\nenergy: 13\nhistogram 2\n",
		b.File(merge, 0, "all"),
	)
	require.Equal(t, "hist:\n0\n1\n2\n", b.Output(merge, 0))
	fit := b.Get("fit")
	require.Equal(t, "644 fit.yaml\n600 db.pass\n644 hist.root\n644 data.bin\n", b.Output(fit, 1))
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, fit.Status.InputsDigest)
	require.Equal(
		t,
		fit.Status.InputsDigest,
		b.SQL(fmt.Sprintf("SELECT inputsDigest FROM runs WHERE uid = '%s'", fit.UID)),
	)
	require.Equal(t, "True", string(b.Condition(fit, v1alpha1.ConditionInputsReady).Status))
	left, err := filepath.Glob(b.Lab.Path("htcd", "data", "staging", string(fit.UID)+"-1", ".in*"))
	require.NoError(t, err)
	require.Empty(t, left, "the schedd has them")
}

// Only what has changed comes back, and nothing that came from a Secret; a job that HTCondor repeats gets it again.
func TestWhatComesBackOfInputs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Kubectl("create", "configmap", "fit", "--from-literal=same=1", "--from-literal=other=1")
	marked(b, "db", "password=s3cret")
	in := inputs(fromMap("same", "fit", "same"), fromMap("other", "fit", "other"), fromSecret("pass", "db", "password"))
	const spoil = "grep -qx s3cret pass && cat same other && echo more >> other && echo s3cret again >> pass\n"
	for name, source := range map[string]string{
		"changed": spoil, "replaced": spoil + "rm pass; mkdir pass; echo s3cret > pass/a\n", "linked": spoil + "rm pass; echo x > .hidden; ln -s .hidden pass\n",
	} {
		b.Script(name, source, in)
	}
	b.Script("repeated", spoil+"[ -e again ] || { touch again; exit 5; }\n", in, retries(1))
	written := "written-" + b.Namespace
	b.Script("killed", spoil+"touch "+written+"; sleep 600\n", in)
	vacated := "vacated-" + b.Namespace
	b.Script("vacated", spoil+"grep -q '^NumJobStarts = [1-9]' .job.ad || { touch "+vacated+"; sleep 600; }\n", in)
	require.NoError(t, syscall.Kill(wrapper(b, written), syscall.SIGKILL))
	wrapper(b, vacated)
	_, err := b.Lab.RunAs(t.Context(), "admin", "condor_vacate_job", b.Get("vacated").Status.JobID[0])
	require.NoError(t, err)
	for _, name := range []string{"changed", "replaced", "linked", "repeated", "vacated", "killed"} {
		job := b.Fetched(name)
		if name != "killed" {
			require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "%s: %v", name, job.Status.Failures)
			require.Contains(t, b.File(job, 0, "other"), "more")
		}
		for _, absent := range []string{"same", "pass", "db"} {
			require.NoFileExists(t, filepath.Join(b.Kept(job), "0", absent), name)
			require.NoDirExists(t, filepath.Join(b.Kept(job), "0", absent), name)
		}
		require.NoError(t, filepath.WalkDir(b.Kept(job), func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			require.NotContains(t, string(text), "s3cret", path)
			return err
		}))
	}
}

func TestAnHTCJobSaysWhichInputItWaitsFor(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("one", "cat a b\n", inputs(fromMap("a", "fit", "a"), fromSecret("b", "db", "b")))
	require.Equal(t, "a: there is no configmap fit in this namespace", awaits(b, "one", "ConfigMapNotFound"))
	b.Kubectl("create", "configmap", "fit", "--from-literal=b=1")
	require.Equal(t, "a: the configmap fit has no key a", awaits(b, "one", "ConfigMapKeyNotFound"))
	b.Kubectl("delete", "rolebinding", "htcd-job-secrets")
	b.Kubectl("patch", "configmap", "fit", "--patch", `{"data":{"a":"1\n"}}`)
	message := awaits(b, "one", "SecretForbidden")
	_, command, found := strings.Cut(message, "kubectl ")
	require.True(t, found, message)
	b.Kubectl(strings.Fields(command)...)
	require.Contains(t, awaits(b, "one", "SecretNotFound"), "b: there is no Secret db")
	b.Kubectl("create", "secret", "generic", "db", "--from-literal=c=1")
	message = awaits(b, "one", "SecretNotMarked")
	_, command, found = strings.Cut(message, "kubectl ")
	require.True(t, found, message)
	b.Kubectl(strings.Fields(command)...)
	require.Contains(t, awaits(b, "one", "SecretKeyNotFound"), "has no key b")
	b.Kubectl("patch", "secret", "db", "--patch", `{"stringData":{"b":"2\n"}}`)
	job := b.Fetched("one")
	require.Equal(t, "1\n2\n", b.Output(job, 0))
	told(b, "one", "SecretNotMarked", "kubectl -n "+b.Namespace+" label secret db htc.cern.ch/jobs=true")
}

func TestInputsThatCannotBeHad(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("good", "echo $1 > made; mkdir dir; echo > dir/a\n", trial.Queue(2))
	b.Script("bad", "[ $1 = 1 ]; code=$?; echo $1 > made; exit $code\n", trial.Queue(2))
	b.Fetched("good")
	b.Fetched("bad")
	b.Kubectl("create", "configmap", "kept", "--from-literal=a=1")
	b.Kubectl("label", "configmap", "kept", "htc.cern.ch/jobs=false")
	optional := func(in v1alpha1.Input) v1alpha1.Input { in.Optional = true; return in }
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 700<<10), 0o600))
	b.Kubectl("create", "configmap", "large", "--from-file=a="+large)
	cases := map[string]struct {
		in            v1alpha1.Input
		queue         int32
		reason, words string
	}{
		"no-file": {
			fromJob("a", "good", "none", 1),
			1,
			"InputFailed",
			`job 1 of the HTCJob good has left no file "none"`,
		},
		"no-proc": {fromJob("a", "good", "made", 2), 1, "InputFailed", "has no job 2, only 2"},
		"a-dir":   {fromJob("a", "good", "dir", 0), 1, "InputFailed", "left no file"},
		"unequal": {fromJob("a", "good", "made", "Same"), 3, "Refused", "this one has 3, and good has 2"},
		"which":   {fromJob("a", "good", "made", nil), 1, "Refused", "write in jobRef.proc whose file is meant"},
		"itself":  {fromJob("a", "itself", "made", nil), 1, "Refused", "names this HTCJob itself"},
		"account": {
			optional(fromSecret("a", "kinit-secret", "password")),
			1,
			"Refused",
			"holds an account of HTCondor",
		},
		"too-much": {
			fromMap("a", "large", "a"),
			1600,
			"Refused",
			"are more than the 1024 MiB that one HTCJob may bring here (--max-input)",
		},
	}
	for name, c := range cases {
		b.Create(name, "exit 0\n", trial.Queue(c.queue), inputs(c.in))
	}
	for name, c := range cases {
		job := b.Ended(name)
		require.Equal(t, []string{"Failed", c.reason}, []string{string(job.Status.Phase), job.Status.Reason}, name)
		require.Contains(t, b.Condition(job, v1alpha1.ConditionFailed).Message, c.words, name)
		require.Zero(t, job.Status.ClusterID)
	}
	b.Create("cycle-a", "exit 0\n", inputs(fromJob("a", "cycle-b", "made", nil)))
	b.Create("cycle-b", "exit 0\n", inputs(fromJob("a", "cycle-a", "made", nil)))
	words := ""
	for _, name := range []string{"cycle-a", "cycle-b"} {
		words += b.Condition(b.Ended(name), v1alpha1.ConditionFailed).Message
	}
	require.Contains(t, words, "a cycle of jobRefs, in which every HTCJob waits for another")

	b.Create("failed", "exit 0\n", inputs(fromJob("a", "bad", "made", 1)))
	require.Contains(t, awaits(b, "failed", "HTCJobFailed"), "a: the HTCJob bad has failed: 1 of 2 jobs failed")
	b.Create("kept", "exit 0\n", inputs(optional(fromMap("a", "kept", "a"))))
	require.Contains(t, awaits(b, "kept", "ConfigMapForbidden"), "htc.cern.ch/jobs=false")

	// With what is optional, the jobs start without it; jobs that failed bring nothing.
	b.Script("optional", "ls a b/* c* d* 2>/dev/null; true\n", trial.Queue(2), inputs(
		optional(
			fromJob("a", "bad", "made", "Same"),
		),
		optional(fromJob("b", "bad", "made", "All")),
		optional(fromJob("c", "good", "none", 0)),
		optional(fromMap("d", "none", "a")),
	))
	job := b.Fetched("optional")
	require.Equal(t, "b/1\n", b.Output(job, 0))
	require.Equal(t, "a\nb/1\n", b.Output(job, 1))

	// A failed source that is run again and then succeeds.
	b.Script("bad", "echo $1 > made\n", trial.Queue(2))
	b.Until("bad", "good", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Phase == v1alpha1.PhaseSucceeded && job.Status.Attempt == 2
	})
	b.Phase("failed", v1alpha1.PhaseSucceeded)
}

// Deleting an HTCJob takes its output away from those that wait; another of its name serves them as well.
func TestADeletedSourceIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("prep", "echo first > made\n")
	b.Fetched("prep")
	b.Kubectl("create", "configmap", "fit", "--from-literal=b=1")
	b.Script("fit", "cat made\n", inputs(fromJob("made", "prep", "made", nil), fromMap("a", "fit", "a")))
	awaits(b, "fit", "ConfigMapKeyNotFound")
	b.Kubectl("delete", "htcjob", "prep", "--timeout="+trial.Patience.String())
	b.Kubectl("patch", "configmap", "fit", "--patch", `{"data":{"a":"1"}}`)
	require.Equal(t, "made: there is no HTCJob prep in this namespace", awaits(b, "fit", "HTCJobNotFound"))
	b.Script("prep", "echo second > made\n")
	require.Equal(t, "second\n", b.Output(b.Fetched("fit"), 0))
}
