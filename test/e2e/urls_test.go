package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// servers are the lab's servers of files, and a directory of the test in each.
type servers struct {
	https, root   string // URLs of the directories
	store, xrootd string // the directories
}

func serve(b *trial.Bench) servers {
	b.T.Helper()
	for _, part := range []string{"store", "xrootd"} {
		require.NoError(b.T, b.Lab.Part(part).Start(b.T.Context()))
	}
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	s := servers{
		https:  fmt.Sprintf("https://127.0.0.1:%d/%s/", world.Ports.Store, b.Namespace),
		root:   fmt.Sprintf("root://127.0.0.1:%d//%s/", world.Ports.XRootD, b.Namespace),
		store:  b.Lab.Path("store", "files", b.Namespace),
		xrootd: b.Lab.Path("xrootd", "files", b.Namespace),
	}
	for account, dir := range map[string]string{"www-data": s.store, "xrootd": s.xrootd} {
		_, err := b.Lab.RunAs(b.T.Context(), "root", "install", "-d", "-o", account, dir)
		require.NoError(b.T, err)
		b.T.Cleanup(func() { require.NoError(b.T, os.RemoveAll(dir)) })
	}
	return s
}

func fromURLs(urls ...string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		for i := 0; i < len(urls); i += 2 {
			job.Spec.Inputs = append(job.Spec.Inputs, v1alpha1.Input{Name: urls[i], URL: urls[i+1]})
		}
	}
}

func TestInputsComeByURL(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	s := serve(b)
	require.NoError(t, os.WriteFile(filepath.Join(s.store, "calib v1"), []byte("by https\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.store, "same"), []byte("same\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.xrootd, "calib.root"), []byte("by root\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.store, "0.txt"), []byte("of 0\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.store, "1.txt"), []byte("of 1\n"), 0o644))
	b.Kubectl("create", "configmap", "each", "--from-literal=a=A", "--from-literal=b=B")
	each := func(job *v1alpha1.HTCJob) {
		job.Spec.Items = []v1alpha1.Item{
			{"KEY": "a", "URL": v1alpha1.ItemValue(s.https + "0.txt")},
			{"KEY": "b", "URL": v1alpha1.ItemValue(s.https + "1.txt")},
		}
		job.Spec.Inputs = append(
			job.Spec.Inputs,
			v1alpha1.Input{Name: "key", ConfigMapKeyRef: &v1alpha1.KeyRef{Name: "each", Key: "{{item.KEY}}"}},
		)
	}
	b.Script(
		"in",
		"cat calib field same own key; echo made > made\n",
		each,
		fromURLs(
			"calib",
			s.https+"calib%20v1?x=y",
			"field",
			s.root+"calib.root",
			"same",
			s.https+"same",
			"own",
			"{{item.URL}}",
		),
	)
	job := b.Fetched("in")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	for proc := range 2 {
		require.Equal(t, "by https\nby root\nsame\nof "+strconv.Itoa(proc)+"\n"+"AB"[proc:proc+1], b.Output(job, proc))
		require.ElementsMatch(
			t,
			[]string{output.Stdout, output.Stderr, "made"},
			b.Files(job, proc),
			"inputs are not brought back",
		)
	}
	left(b, job)
}

func TestAnInputThatCannotBeFetchedIsNamed(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	s := serve(b)
	require.NoError(t, os.WriteFile(filepath.Join(s.xrootd, "another"), nil, 0o644))
	deadline := func(job *v1alpha1.HTCJob) { job.Spec.HeldDeadlineSeconds = new(int64(1)) }
	for name, url := range map[string]string{"https": s.https + "none.root", "root": s.root + "none.root"} {
		b.Script(name, "exit 0\n", fromURLs("field", s.root+"another", "calib", url))
		b.Script(name+"-given-up", "exit 0\n", fromURLs("calib", url), deadline)
	}
	for name, url := range map[string]string{"https": s.https + "none.root", "root": s.root + "none.root"} {
		job := b.Until(name, "held", func(job *v1alpha1.HTCJob) bool { return job.Status.Held == 1 })
		held := b.Condition(job, v1alpha1.ConditionHeld).Message
		require.Contains(t, held, "hold code 13/")
		require.Contains(t, held, url)
		failed := b.Ended(name + "-given-up")
		require.Equal(t, "HeldDeadlineExceeded", failed.Status.Failures[0].Reason)
		require.Contains(t, failed.Status.Failures[0].Message, url)
		b.Kubectl("delete", "htcjob", name)
	}
}

func TestASchemeThatTheSiteDoesNotAllowIsRefused(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("ftp", "exit 0\n", fromURLs("a", "ftp://example.org/a"))
	job := b.Ended("ftp")
	require.Equal(t, "Refused", job.Status.Reason)
	require.Contains(
		t,
		b.Condition(job, v1alpha1.ConditionFailed).Message,
		"this site allows the schemes https, root, davs (--allow-url-schemes)",
	)
}

func TestOutputsAreWrittenToURLs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	s := serve(b)
	to := func(path, url string) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Spec.Outputs = append(job.Spec.Outputs, v1alpha1.Output{Path: path, URL: url})
		}
	}
	const source = "mkdir d; echo \"big $1\" > big.root; echo \"field $1\" > d/field; echo small > small.root\n"
	byHTTPS, byRoot := to("big.root", s.https+"{name}/{attempt}/{proc}/big.root"), to("d/field", s.root+"{name}-{proc}")
	b.Script("out", source, trial.Queue(2), outputs("*.root"), byHTTPS, byRoot)
	b.Script("failed", source+"exit 3\n", byHTTPS)
	b.Script("lacking", source, byHTTPS, to("none", s.https+"none/{proc}"))

	job := b.Fetched("out")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	for proc := range 2 {
		text, err := os.ReadFile(filepath.Join(s.store, "out", "1", fmt.Sprint(proc), "big.root"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("big %d\n", proc), string(text))
		text, err = os.ReadFile(filepath.Join(s.xrootd, fmt.Sprintf("out-%d", proc)))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("field %d\n", proc), string(text))
		require.ElementsMatch(t, []string{output.Stdout, output.Stderr, "small.root"}, b.Files(job, proc))
		for i, want := range []v1alpha1.WrittenOutput{
			{Path: "big.root", URL: fmt.Sprintf("%sout/1/%d/big.root", s.https, proc), Size: new(int64(6)), Digest: sum(fmt.Sprintf("big %d\n", proc))},
			{Path: "d/field", URL: fmt.Sprintf("%sout-%d", s.root, proc), Size: new(int64(8)), Digest: sum(fmt.Sprintf("field %d\n", proc))},
		} {
			want.Proc = int32(proc)
			require.Equal(t, want, job.Status.Outputs[2*proc+i])
		}
	}
	require.Len(t, job.Status.Outputs, 4)
	left(b, job)

	job = b.Fetched("failed")
	require.EqualValues(t, 3, *job.Status.Failures[0].ExitCode)
	require.Empty(t, job.Status.Outputs)
	job = b.Fetched("lacking")
	require.Equal(t, "OutputMissing", job.Status.Failures[0].Reason)
	for _, name := range []string{"failed", "lacking", "none"} {
		require.NoDirExists(t, filepath.Join(s.store, name), "it has failed")
	}
}

// sum returns a digest as a status has it.
func sum(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

func TestAnOutputThatCannotBeWrittenIsNamed(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	s := serve(b)
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	// Nobody but root may write there.
	_, err = b.Lab.RunAs(
		t.Context(),
		"root",
		"install",
		"-d",
		"-o",
		"root",
		"-m",
		"755",
		filepath.Join(s.xrootd, "locked"),
	)
	require.NoError(t, err)
	for name, url := range map[string]string{
		"https": fmt.Sprintf("https://127.0.0.1:%d/refused/{proc}", world.Ports.Store),
		"root":  s.root + "locked/{proc}",
	} {
		b.Script(
			name,
			"touch big\n",
			func(job *v1alpha1.HTCJob) { job.Spec.Outputs = []v1alpha1.Output{{Path: "big", URL: url}} },
		)
		job := b.Until(name, "held", func(job *v1alpha1.HTCJob) bool { return job.Status.Held == 1 })
		held := b.Condition(job, v1alpha1.ConditionHeld).Message
		require.Contains(t, held, "hold code 12/")
		require.Contains(t, held, strings.ReplaceAll(url, "{proc}", "0"))
		require.Empty(t, job.Status.Outputs)
	}
}

// The nodes of a step write to URLs what nodes of the same DAG, and of a later one, pull from them, too.
func TestNodesWriteToURLs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	s := serve(b)
	f := flowIn(b, "out", fmt.Sprintf(`
  sequences: {count: 2}
  steps:
  - name: makes
    job:
      script:
        image: centos
        command: sh
        source: echo small >small; echo "big $jobid" >big.root; echo "kept $jobid" >kept
      outputs:
      - {path: small}
      - {path: big.root, url: "%[1]s{name}/{attempt}/{jobid}/big.root"}
      - {path: kept, url: "%[2]s{name}-{jobid}"}
  - name: after
    pull: [{from: makes, path: big.root}]
    job: {script: {image: centos, command: sh, source: cat big.root}}
  finally:
    name: sums
    pull: [{from: makes, path: kept}]
    job:
      script: {image: centos, command: sh, source: cat */kept | tee all}
      outputs: [{path: all, url: "%[1]s{name}/{attempt}/all"}]
`, s.https, s.root))
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status)
	read := func(parts ...string) string {
		text, err := os.ReadFile(filepath.Join(parts...))
		require.NoError(t, err)
		return string(text)
	}
	for _, jobid := range []string{"job_0", "job_1"} {
		require.Equal(t, "big "+jobid+"\n", read(s.store, "out", "1", jobid, "big.root"))
		require.Equal(t, "kept "+jobid+"\n", read(s.xrootd, "out-"+jobid))
		require.Equal(t, "small\n", f.output(w, "makes/"+jobid, "small"))
		require.Equal(
			t,
			"kept "+jobid+"\n",
			f.output(w, "makes/"+jobid, "kept"),
			"what a later DAG pulls is brought back, too",
		)
		require.NoFileExists(
			t,
			b.Lab.Path("htcd", "data", "workflows", b.Namespace, "out", "1", "makes", jobid, "big.root"),
		)
		require.Equal(t, "big "+jobid+"\n", f.output(w, "after/"+jobid, output.Stdout))
	}
	const all = "kept job_0\nkept job_1\n"
	require.Equal(t, all, f.output(w, "sums/all", output.Stdout))
	require.Equal(t, all, read(s.store, "out", "1", "all"), "its DAG is the second one of the first attempt")
	f.gone(w)

	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	url := fmt.Sprintf("https://127.0.0.1:%d/refused/", world.Ports.Store)
	f = flowIn(b, "refused", fmt.Sprintf(`
  steps:
  - name: makes
    job:
      script: {image: centos, command: sh, source: touch big}
      outputs: [{path: big, url: "%s{jobid}"}]
`, url))
	w = f.until("held", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Held == 1 })
	require.Zero(t, w.Status.Nodes.Done)
	held := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionHeld).Message
	require.Contains(t, held, "hold code 12/")
	require.Contains(t, held, url+"job_0")
	f.gone(w)
}

// Nothing of a large file passes the schedd, in or out.
func TestLargeFilesByURLDoNotPassTheSchedd(t *testing.T) {
	b := trial.New(t)
	s := serve(b)
	const size = 1 << 30
	require.NoError(t, os.WriteFile(filepath.Join(s.store, "in"), nil, 0o644))
	require.NoError(t, os.Truncate(filepath.Join(s.store, "in"), size))
	b.Script("large", "stat -c %s big; mv big out\n", fromURLs("big", s.https+"in"), func(job *v1alpha1.HTCJob) {
		job.Spec.Outputs = []v1alpha1.Output{{Path: "out", URL: s.https + "out"}}
	})
	var most int64
	job := b.Until("large", "fetched", func(job *v1alpha1.HTCJob) bool {
		most = max(most, largest(b.Lab.Path("condor", "spool")))
		return job.Status.Phase.Terminal() &&
			meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	})
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.Equal(t, fmt.Sprintln(size), b.Output(job, 0))
	info, err := os.Stat(filepath.Join(s.store, "out"))
	require.NoError(t, err)
	require.EqualValues(t, size, info.Size())
	require.EqualValues(t, size, *job.Status.Outputs[0].Size)
	require.Less(t, most, int64(64<<20), "the largest file in the schedd's spool")
	t.Logf("the largest file in the schedd's spool had %d bytes", most)
}

// largest is the size of the largest file below a directory.
func largest(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // it has gone meanwhile
		}
		if info, err := entry.Info(); err == nil {
			size = max(size, info.Size())
		}
		return nil
	})
	return size
}
