package e2e

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// commands runs a user's command in a test's namespace.
type commands struct{ *trial.Bench }

// ends returns a command's standard output, which it must end with this code.
func (c commands) ends(code int, words ...string) string {
	c.T.Helper()
	at := slices.Index(words, "--") // what follows is a job's command
	if at < 0 {
		at = len(words)
	}
	out, err := c.Lab.Run(c.T.Context(), "htcd", slices.Insert(slices.Clone(words), at, "-n", c.Namespace)...)
	exit := 0
	if e, is := errors.AsType[*exec.ExitError](err); is {
		exit = e.ExitCode()
	}
	require.Equal(c.T, code, exit, "%v: %s%v", words, out, err)
	return out
}

func script(name, source, more string) string {
	return "apiVersion: htc.cern.ch/v1alpha1\nkind: HTCJob\nmetadata: {name: " + name + "}\nspec:\n  script: {image: centos, command: bash, source: '" + source + "'}\n" + more
}

func TestScriptsFollowHTCJobsByWordsAndExitCodes(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	dir := t.TempDir()
	good := fileIn(t, dir, "good.yaml", script("good", "echo fine; echo job $1 >out", "  queue: 3\n  result: out\n"))
	bad := fileIn(t, dir, "bad.yaml", script("bad", "exit 64", ""))
	never := fileIn(t, dir, "never.yaml", script("never", "exit 0", "  htcopts: requirements = false\n"))

	require.Equal(t, "htcjob.htc.cern.ch/good submitted (dry run)\n", c.ends(0, "submit", good, "--dry-run"))
	_, err := c.Jobs.Get(t.Context(), "good", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	c.ends(1, "submit", "--dry-run", fileIn(t, dir, "wrong.yaml", script("wrong", "x", "  priority: 1000001\n")))
	c.ends(1, "status", "good")
	c.ends(1, "wait", "good")

	require.Equal(t, "good\n", c.ends(0, "submit", good, "--name-only"))
	require.Equal(t, "bad\n", c.ends(0, "submit", bad, "--name-only"))
	require.Equal(t, "never\n", c.ends(0, "submit", never, "--name-only"))
	require.Empty(t, c.ends(0, "wait", "good", "htcjob.htc.cern.ch/good"))
	c.ends(64, "wait", "good", "bad")
	c.ends(124, "wait", "never", "--timeout", "1s")
	require.Equal(t, "succeeded\n", c.ends(0, "status", "good"))
	require.Equal(t, "failed\n", c.ends(3, "status", "bad"))
	require.Equal(t, "pending\n", c.ends(4, "status", "never"))

	job := c.Until("good", "fetched", func(job *v1alpha1.HTCJob) bool { return job.Status.OutputFetched })
	require.EqualValues(t, 0, *job.Status.ExitCode)
	require.Equal(t, "3 jobs succeeded", job.Status.Message)
	require.Equal(t, "job 0\njob 1\njob 2", *job.Status.Result, "in the same write")
	_, err = c.Jobs.Patch(
		t.Context(),
		"good",
		types.MergePatchType,
		[]byte(`{"spec":{"result":"stdout"}}`),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	job = c.Until(
		"good",
		"read again",
		func(job *v1alpha1.HTCJob) bool { return job.Status.ObservedGeneration == job.Generation },
	)
	require.Equal(t, "fine\nfine\nfine", *job.Status.Result)
	require.EqualValues(t, 1, job.Status.Attempt, "it is not sent")
	_, err = c.Jobs.Patch(
		t.Context(),
		"good",
		types.MergePatchType,
		[]byte(`{"spec":{"result":"out/../out"}}`),
		metav1.PatchOptions{},
	)
	require.ErrorContains(t, err, "the result must be stdout, or a file's path")
	job = c.Get("bad")
	require.Nil(t, job.Status.Result)
	require.EqualValues(t, 64, *job.Status.ExitCode)
	require.Contains(t, job.Status.Message, "exit code 64")
	require.Equal(
		t,
		"true 64",
		c.Kubectl(
			"wait",
			"--for=jsonpath={.status.outputFetched}=true",
			"htcjob/bad",
			"--timeout="+trial.Patience.String(),
			"-o",
			"jsonpath={.status.outputFetched} {.status.exitCode}",
		),
	)
	require.Equal(
		t,
		"htcjob.htc.cern.ch/bad\n",
		c.Kubectl("get", "htcjobs", "--field-selector", "status.phase=Failed", "-o", "name"),
	)

	require.Equal(t, "htcjob.htc.cern.ch/bad\n", c.ends(0, "list", "--failed", "--since", "24h", "-o", "name"))
	require.Len(t, strings.Split(c.ends(0, "list"), "\n"), 5, "with the heading and the last line's end")
	require.Contains(t, c.ends(0, "list", "--active", "-o", "json"), `"name":"never"`)
	require.Equal(t, "failed\n", func() string {
		out, err := c.Lab.Run(t.Context(), "kubectl-htcjob", "status", "bad", "-n", c.Namespace)
		require.Error(t, err)
		return out
	}())
	completed, err := c.Lab.Run(t.Context(), "htcd", "__complete", "cancel", "-n", c.Namespace, "good", "")
	require.NoError(t, err)
	require.Contains(t, completed, "never\tpending\n")
	require.NotContains(t, completed, "good")

	require.Equal(
		t,
		"htcjob.htc.cern.ch/good has ended already\nhtcjob.htc.cern.ch/never is cancelled\n",
		c.ends(1, "cancel", "none", "good", "never"),
	)
	require.False(t, c.Get("good").Spec.Suspend)
	c.Phase("never", v1alpha1.PhaseSuspended)
	require.Equal(t, "suspended\n", c.ends(6, "status", "never"))
	require.Empty(t, c.Queued(trial.Tagged(c.Get("never"))))

	require.ElementsMatch(
		t,
		[]string{"htcjob.htc.cern.ch/bad deleted", "htcjob.htc.cern.ch/good deleted"},
		strings.Split(strings.TrimSpace(c.ends(0, "delete", "--finished")), "\n"),
	)
	require.Equal(t, "htcjob.htc.cern.ch/never deleted\n", c.ends(0, "delete", "never"))
}

func TestASubmissionThatIsRefusedEndsWithOne(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	file := fileIn(
		t,
		t.TempDir(),
		"job.yaml",
		script("forbidden", "exit 0", "  htcopts: +ProjectName = \"forbidden\"\n"),
	)
	_, err := c.Lab.Run(t.Context(), "htcd", "submit", file, "-n", c.Namespace)
	if err != nil { // HTCondor may have taken longer than 2 s
		require.ErrorContains(t, err, "forbidden: refused: ")
	}
	job := c.Phase("forbidden", v1alpha1.PhaseFailed)
	require.Nil(t, job.Status.ExitCode)
	require.False(t, job.Status.OutputFetched)
	_, err = c.Lab.Run(t.Context(), "htcd", "submit", file, "-n", c.Namespace)
	require.ErrorContains(t, err, "exit status 1")
	require.ErrorContains(t, err, "forbidden: refused: "+job.Status.Message)
	c.ends(1, "submit", file, "--watch")
}
