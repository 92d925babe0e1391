package schedd_test

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// A container that apptainer is setting up loses the signal by which HTCondor asks a job to end, and HTCondor would
// kill the job only 10 minutes later. The job is told to end at many moments of its start.
func TestAJobThatIsToldToEndWhileItsContainerIsSetUpEnds(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	b.d.Image, b.d.Source = filepath.Join(dir, "image.sif"), "sleep 1000"
	env := pullImage(t, b, dir)
	for pause := time.Duration(0); pause < 200*time.Millisecond; pause += 10 * time.Millisecond {
		scratch := t.TempDir()
		require.NoError(t, stage(scratch, b.d))
		job := exec.CommandContext(t.Context(), "sh", "job.sh", "0")
		job.Dir, job.Env = scratch, append(env, "_CONDOR_SCRATCH_DIR="+scratch)
		job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, job.Start())
		time.Sleep(pause) // the moment is what is tested
		require.NoError(t, job.Process.Signal(syscall.SIGTERM))
		overdue := time.AfterFunc(patience, func() { _ = syscall.Kill(-job.Process.Pid, syscall.SIGKILL) })
		require.Error(t, job.Wait())
		require.True(t, overdue.Stop(), "it went on when told to end %s after its start", pause)
	}
}

// However slow a node is, its apptainer loses the signal only until there is a script. Here it is stopped for a while
// at random moments.
func TestAJobThatIsToldToEndWhileApptainerIsSlowEnds(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	b.d.Image, b.d.Source = filepath.Join(dir, "image.sif"), "sleep 1000"
	env := pullImage(t, b, dir)
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	for round := range 12 {
		scratch := t.TempDir()
		require.NoError(t, stage(scratch, b.d))
		job := exec.CommandContext(t.Context(), "sh", "job.sh", "0")
		job.Dir, job.Env = scratch, append(env, "_CONDOR_SCRATCH_DIR="+scratch)
		job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, job.Start())
		told := random.Intn(4)
		for n := range 4 {
			time.Sleep(time.Duration(random.Intn(60)) * time.Millisecond)
			stopped := below(job.Process.Pid)
			for _, pid := range stopped {
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
			if n == told {
				require.NoError(t, job.Process.Signal(syscall.SIGTERM))
			}
			time.Sleep(time.Duration(random.Intn(1500)) * time.Millisecond)
			for _, pid := range stopped {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
		overdue := time.AfterFunc(patience, func() { _ = syscall.Kill(-job.Process.Pid, syscall.SIGKILL) })
		require.Error(t, job.Wait())
		require.True(t, overdue.Stop(), "round %d: it went on when told to end", round)
	}
}

// below lists the processes that a process has started, and those that they have.
func below(pid int) (all []int) {
	for _, child := range trial.Children(pid) {
		all = append(append(all, child), below(child)...)
	}
	return all
}

// pullImage fetches the image centos to dir/image.sif, and returns the environment for its jobs.
func pullImage(t *testing.T, b *bench, dir string) []string {
	t.Helper()
	env := append(os.Environ(), "APPTAINER_CACHEDIR="+dir, "APPTAINER_TMPDIR="+dir)
	pull := exec.CommandContext(
		t.Context(),
		"apptainer",
		"--quiet",
		"pull",
		"--no-https",
		filepath.Join(dir, "image.sif"),
		fmt.Sprintf("docker://127.0.0.1:%d/centos", b.world.Ports.Registry),
	)
	pull.Env = env
	out, err := pull.CombinedOutput()
	require.NoError(t, err, string(out))
	return env
}
