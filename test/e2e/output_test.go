package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/test/trial"
)

// left waits until the jobs of an HTCJob are in the history, and returns what it says about them.
func left(b *trial.Bench, job *v1alpha1.HTCJob, attributes ...string) []string {
	b.T.Helper()
	var found []string
	b.Eventually(func() bool {
		found = b.Condor("condor_history", trial.Tagged(job), attributes...)
		return len(found) == job.Queue()
	}, func() string { return fmt.Sprintf("in the history are %v", found) })
	require.Empty(b.T, b.Condor("condor_q", trial.Tagged(job)))
	return found
}

func TestOutputIsFetchedAndTheJobsLeaveTheQueue(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("out", "echo \"I am $1\"\necho \"number $1\" > made.txt\n", trial.Queue(3))
	job := b.Fetched("out")
	for proc := range 3 {
		require.Equal(t, fmt.Sprintf("I am %d\n", proc), b.Output(job, proc))
		require.Equal(t, fmt.Sprintf("number %d\n", proc), b.File(job, proc, "made.txt"))
		files, err := os.ReadDir(filepath.Join(b.Kept(job), strconv.Itoa(proc)))
		require.NoError(t, err)
		var names []string
		for _, f := range files {
			names = append(names, f.Name())
		}
		require.Equal(t, []string{output.Stderr, output.Stdout, "made.txt"}, names, "and nothing of the sandbox")
	}
	for _, ad := range left(b, job, "JobStatus") {
		require.Equal(t, "4", strings.Fields(ad)[1])
	}
	staged, err := filepath.Glob(b.Lab.Path("htcd", "data", "staging", string(job.UID)+"-1", "*"))
	require.NoError(t, err)
	for _, file := range staged {
		require.Contains(
			t,
			[]string{"job.sub", "job.sh", "script", "token"},
			filepath.Base(file),
			"nothing was fetched into the staging directory",
		)
	}
}

func TestTheEndOfAFailedJobsStderrIsInTheStatus(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script(
		"failing",
		"echo fine; for i in $(seq 30); do echo \"line $i\" >&2; done; printf '\\033[31mred' >&2; exit 4\n",
	)
	job := b.Fetched("failing")
	require.Len(t, job.Status.Failures, 1)
	lines := strings.Split(job.Status.Failures[0].Stderr, "\n")
	require.Len(t, lines, 20)
	require.Equal(t, "line 12", lines[0])
	require.Equal(t, "?[31mred", lines[19])
}

func TestAJobsLinksAndNamesLeadNowhere(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("links", `ln -s /etc/hostname absolute; ln -s ../.. up; ln -s "$PWD" self; ln -s made inside
echo made > made; rm -f _condor_stdout; echo other > job.sub; echo other > .job.sub
echo '..' > '../escape' 2>/dev/null || :
echo done`+"\n")
	job := b.Fetched("links")
	require.Equal(t, "done\n", b.Output(job, 0), "the script has removed nothing of HTCondor's")
	require.Equal(t, "made\n", b.File(job, 0, "made"))
	require.NoError(t, filepath.WalkDir(b.Kept(job), func(path string, entry os.DirEntry, err error) error {
		require.True(t, err != nil || entry.IsDir() || entry.Type().IsRegular(), "%s is %v", path, entry)
		return err
	}))
	entries, err := os.ReadDir(b.Kept(job))
	require.NoError(t, err)
	require.Len(t, entries, 1, "only the proc's own directory")
}

// HTCondor would read a FIFO until somebody wrote to it, and the job would keep its slot.
func TestWhatIsNoFileDoesNotHoldUpTheRest(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script(
		"fifo",
		`mkfifo p .hidden; mkdir d; mkfifo d/p; ln -s p link; ln -s /dev/zero zero; ln -s /nonexistent dangling
echo good > plain`+"\n",
	)
	job := b.Fetched("fifo")
	require.Equal(t, "good\n", b.File(job, 0, "plain"))
	for _, ad := range left(b, job, "JobStatus") {
		require.Equal(t, "4", strings.Fields(ad)[1])
	}
}

// HTCondor joins file names with commas; 25.14 accepts none with a line end, and such a job never ended.
func TestFilesMayHaveAnyName(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	names := []string{"a,b", ",", " blanks ", "it's \"a\", b;\nü", "line\nend", ".hidden,", "-f,", "tab\t", "plain"}
	var script strings.Builder
	for i, name := range names {
		fmt.Fprintf(
			&script,
			"echo %d > ./$'%s'\n",
			i,
			strings.NewReplacer("'", `\'`, "\n", `\n`, "\t", `\t`).Replace(name),
		)
	}
	b.Script("names", script.String()+"echo out; exit 3\n")
	job := b.Fetched("names")
	require.Equal(t, "out\n", b.Output(job, 0))
	for i, name := range names {
		require.Equal(t, strconv.Itoa(i)+"\n", b.File(job, 0, name))
	}
	files, err := os.ReadDir(filepath.Join(b.Kept(job), "0"))
	require.NoError(t, err)
	require.Len(t, files, len(names)+2, "and the two streams: %v", files)
	left(b, job)
}

// wrapper returns the process that HTCondor started on the node for the job whose directory contains that file.
func wrapper(b *trial.Bench, file string) int {
	b.T.Helper()
	pid := 0
	b.Eventually(func() bool {
		processes, err := filepath.Glob("/proc/[0-9]*")
		require.NoError(b.T, err)
		for _, dir := range processes {
			if _, err := os.Stat(filepath.Join(dir, "cwd", ".htcd", "job", file)); err != nil {
				continue
			}
			status, _ := os.ReadFile(filepath.Join(dir, "status")) // missing: it has ended
			_, parent, _ := strings.Cut(string(status), "\nPPid:\t")
			parent, _, _ = strings.Cut(parent, "\n")
			if name, _ := os.ReadFile("/proc/" + parent + "/comm"); string(name) == "condor_starter\n" {
				pid, err = strconv.Atoi(filepath.Base(dir))
				return err == nil
			}
		}
		return false
	}, func() string { return "no process of a job whose directory holds " + file })
	return pid
}

// Nobody has looked at what the script left if its wrapper is killed.
func TestAJobThatIsKilledWithItsWrapperBringsBackWhatItPrintedAlone(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	written := "written-" + b.Namespace
	b.Script(
		"killed",
		"echo 1 > a,b; echo 2 > ,; echo 3 > ' blanks '; echo 4 > b; echo 5 > plain; ln -s /etc/passwd link; echo out\ntouch "+written+"; sleep 600\n",
	)
	require.NoError(t, syscall.Kill(wrapper(b, written), syscall.SIGKILL))
	job := b.Fetched("killed")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, "out\n", b.Output(job, 0))
	require.ElementsMatch(t, []string{output.Stdout, output.Stderr}, b.Files(job, 0))
	left(b, job)
}

func TestAJobWithTooMuchOutputIsHeldAndSaysSo(t *testing.T) {
	b := trial.New(t)
	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Restart(t.Context(), "--max-output=1Mi"))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	b.Script("big", "head -c 3000000 /dev/zero > big\n")
	job := neverSucceeded(b, "big")
	require.Contains(t, b.Condition(job, v1alpha1.ConditionHeld).Message, "--max-output")
}

func TestARerunReplacesTheOutputAndDeletingDropsIt(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("again", "echo first\n")
	first := b.Fetched("again")
	require.Equal(t, "first\n", b.Output(first, 0))
	b.Script("again", "echo second\n")
	second := b.Until("again", "run again", func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 })
	require.Equal(t, "second\n", b.Output(second, 0))
	b.Eventually(func() bool { _, err := os.Stat(b.Kept(first)); return os.IsNotExist(err) },
		func() string { return "the first attempt's output stays" })
	b.Kubectl("delete", "htcjob", "again", "--timeout="+trial.Patience.String())
	require.NoDirExists(t, filepath.Dir(b.Kept(first)))

	b.Script("again", "echo third\n")
	third := b.Fetched("again")
	require.EqualValues(t, 1, third.Status.Attempt)
	require.Equal(t, "third\n", b.Output(third, 0))
}
