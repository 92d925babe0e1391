package schedd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A container that apptainer is setting up loses the signal by which HTCondor asks a job to end, and HTCondor would kill the
// job only 10 minutes later. The job is told to end at many moments of its start.
func TestAJobThatIsToldToEndWhileItsContainerIsSetUpEnds(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	b.d.Image, b.d.Source = filepath.Join(dir, "image.sif"), "sleep 1000"
	env := append(os.Environ(), "APPTAINER_CACHEDIR="+dir, "APPTAINER_TMPDIR="+dir)
	pull := exec.CommandContext(t.Context(), "apptainer", "--quiet", "pull", "--no-https", b.d.Image, fmt.Sprintf("docker://127.0.0.1:%d/centos", b.world.Ports.Registry))
	pull.Env = env
	out, err := pull.CombinedOutput()
	require.NoError(t, err, string(out))
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
