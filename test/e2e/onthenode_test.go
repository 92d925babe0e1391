package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/test/trial"
)

func TestTemporaryFilesAndHomeAreOnTheJobsOwnDisk(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	written := "written-" + b.Namespace
	b.Script("scratch", `set -e
for d in /tmp /var/tmp "$HOME"; do
	head -c 70000000 /dev/zero > "$d/$HTCPROCID.of-`+b.Namespace+`"
	test "$(stat -c %s "$d/$HTCPROCID.of-`+b.Namespace+`")" = 70000000
	test "$(stat -f -c %T "$d")" = "$(stat -f -c %T .)"
done
mkdir -p "$HOME/go/pkg"; touch "$HOME/go/pkg/kept"; chmod 500 "$HOME/go/pkg" "$HOME/go"
touch `+written+`
until [ -e counted ]; do sleep 0.2; done
rm counted `+written+`
`)
	pid := wrapper(b, written)
	b.Eventually(func() bool {
		return len(b.Condor("condor_q", trial.Tagged(b.Get("scratch"))+" && DiskUsage >= 200000")) == 1
	}, func() string { return "HTCondor did not count the files" })
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/cwd/.htcd/job/counted", pid), nil, 0o644))
	job := b.Fetched("scratch")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "scratch"))
	files, err := os.ReadDir(filepath.Join(b.Kept(job), "0"))
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	require.Equal(t, []string{output.Stderr, output.Stdout}, names, "none of it is output")
	b.Eventually(func() bool {
		found, err := b.Lab.RunAs(
			t.Context(),
			"root",
			"find",
			"/tmp",
			"/var/tmp",
			"/home",
			b.Lab.Path("condor", "execute"),
			"-name",
			"*.of-"+b.Namespace,
		)
		return err == nil && strings.TrimSpace(found) == ""
	}, func() string { return "files of the job are left on the node" })
}

// nvidiaSMI is one of a node's programs that apptainer shows only with --nv.
const nvidiaSMI = "/usr/local/bin/nvidia-smi"

func TestAJobThatIsGivenGPUsSeesThemAndNoOtherDoes(t *testing.T) {
	b := trial.New(t)
	_, err := b.Lab.RunAs(
		t.Context(),
		"root",
		"sh",
		"-c",
		"printf '#!/bin/sh\\necho shown\\n' > "+nvidiaSMI+"; chmod 755 "+nvidiaSMI,
	)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := b.Lab.RunAs(context.WithoutCancel(t.Context()), "root", "rm", "-f", nvidiaSMI)
		require.NoError(t, err)
	})
	script := "echo \"$CUDA_VISIBLE_DEVICES $(nvidia-smi 2>/dev/null)\"\n"
	// First, because the schedd reuses the slot of an ended job for the account's next one, with its GPUs.
	b.Script("none", script)
	require.Equal(t, "10000 \n", b.Output(b.Ended("none"), 0))
	b.Script("two", script, func(job *v1alpha1.HTCJob) {
		job.Spec.Resources = &v1alpha1.Resources{GPUs: new(resource.MustParse("2"))}
	})
	require.Equal(t, "CUDA0,CUDA1 shown\n", b.Output(b.Ended("two"), 0))
}

// neverSucceeded waits until an HTCJob is held, and fails if it was reported as succeeded before.
func neverSucceeded(b *trial.Bench, name string) *v1alpha1.HTCJob {
	job := b.Until(
		name,
		"held",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Held > 0 || job.Status.Phase.Terminal() },
	)
	require.EqualValues(b.T, 1, job.Status.Held, b.Kubectl("describe", "htcjob", name))
	require.NotContains(b.T, b.Kubectl("get", "events", "--field-selector=involvedObject.name="+name), "Succeeded")
	return job
}

func TestAJobWithoutTheFilesItIsToLeaveHasNotSucceeded(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	named := func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "transfer_output_files = made, plots/, sub/made\n" }
	b.Script("missing", "echo 1 > made; mkdir plots\n", named)
	b.Script("there", "echo 1 > made; mkdir plots sub; echo 2 > plots/a; chmod 0 plots/a; echo 3 > sub/made\n", named)
	neverSucceeded(b, "missing")
	there := b.Ended("there")
	require.Equal(t, v1alpha1.PhaseSucceeded, there.Status.Phase)
	require.Equal(t, "callback", b.Source(there), "an end that HTCondor will confirm is told at once")
	require.Equal(t, "2\n", b.File(there, 0, "a"), "what nobody may read is made readable")
}

// A problem that only HTCondor finds, such as a spool it cannot write to, revokes a success; an attempt requested
// meanwhile waits.
func TestASuccessThatHTCondorTakesBackIsToldAndBeginsNoOtherAttempt(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	wait, open := b.Gate()
	b.Script("obstructed", wait+"echo 1 > made\n", func(job *v1alpha1.HTCJob) {
		job.Spec.HTCOpts = "transfer_output_files = made\n"
		job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "first"}
	})
	job := b.Phase("obstructed", v1alpha1.PhaseRunning)
	_, spool, _ := strings.Cut(b.Condor("condor_q", trial.Tagged(job), "Iwd")[0], " ")
	_, err := b.Lab.RunAs(t.Context(), "root", "mkdir", "-p", filepath.Join(spool, "made", "already"))
	require.NoError(t, err)
	open()
	b.Phase("obstructed", v1alpha1.PhaseSucceeded)
	b.Kubectl("annotate", "--overwrite", "htcjob", "obstructed", v1alpha1.RerunAnnotation+"=again")
	job = b.Until(
		"obstructed",
		"held",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Held > 0 || job.Status.Attempt > 1 },
	)
	require.EqualValues(t, 1, job.Status.Attempt, "attempt 1 is on hold")
	b.Event("obstructed", "SuccessCorrected")
}
