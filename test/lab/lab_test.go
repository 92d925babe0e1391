package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/cache"
	"htc.cern.ch/htcd/test/lab/parts"
)

// newLab builds a lab's program into its own directory; nothing runs yet.
func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	l, err := lab.Open(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(l.Path("bin"), 0o755))
	// As make lab builds it, so that nothing is compiled twice.
	build := exec.CommandContext(
		t.Context(),
		"go",
		slices.Concat([]string{"build"}, cache.BuildFlags, []string{"-o", l.Bin("lab"), "./cmd/lab"})...)
	build.Dir, build.Env = filepath.Join(clone(t), "test"), cache.BuildEnv()
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return l
}

func clone(t *testing.T) string {
	t.Helper()
	dir, err := lab.CloneAround(".")
	require.NoError(t, err)
	return dir
}

// up prepares "lab up" for the lab.
func up(t *testing.T, l *lab.Lab, flags ...string) *exec.Cmd {
	t.Helper()
	args := append([]string{"up", "--clone", clone(t)}, flags...)
	cmd := exec.CommandContext(t.Context(), l.Bin("lab"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// requireNothingLeft checks that no process of the lab lives, in whatever namespace, and nothing is mounted for it.
func requireNothingLeft(t *testing.T, l *lab.Lab) {
	t.Helper()
	_, err := l.Identity()
	require.ErrorIs(t, err, lab.ErrNotRunning)
	// What was killed with the lab ends when the kernel gets to it.
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		require.NoError(t, err)
		for _, p := range processes {
			line, err := os.ReadFile(p)
			if err != nil {
				continue // it has ended since
			}
			require.NotContains(t, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})), l.Dir, "%s", p)
		}
	}, 10*time.Second, 20*time.Millisecond)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), l.Dir)
}

func TestSecondLabRunsBesideTheFirstAndLeavesNothing(t *testing.T) {
	first, err := lab.Find()
	require.NoError(t, err)
	second := newLab(t)
	out, err := up(t, second, "--without-htcd").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		_, err := second.Run(context.Background(), "lab", "down")
		require.NoError(t, err)
		requireNothingLeft(t, second)
	})

	t.Run("both answer on ports of their own", func(t *testing.T) {
		a, err := first.Ask(t.Context(), lab.Request{Op: lab.OpStatus}, nil)
		require.NoError(t, err)
		b, err := second.Ask(t.Context(), lab.Request{Op: lab.OpStatus}, nil)
		require.NoError(t, err)
		ports := map[int]bool{}
		for _, p := range a.Parts {
			ports[p.Port] = true
		}
		for _, p := range b.Parts {
			require.False(t, ports[p.Port], "port %d of %s", p.Port, p.Part)
		}
	})

	for _, part := range []string{
		"etcd", "apiserver", "controller-manager", "kdc", "condor", "schedd", "schedd2", "registry", "receiver-net",
		"store", "xrootd",
	} {
		t.Run(part+" stays away after stop and after kill and comes back on start", func(t *testing.T) {
			p := second.Part(part)
			for _, end := range []func(context.Context) error{p.Stop, p.Kill} {
				require.NoError(t, end(t.Context()))
				require.Equal(t, "stopped", state(t, second, part))
				require.NoError(t, p.Start(t.Context()))
				require.Equal(t, "running", state(t, second, part))
			}
			require.NoError(t, p.Freeze(t.Context()))
			require.Equal(t, "frozen", state(t, second, part))
			require.NoError(t, p.Thaw(t.Context()))
			require.Equal(t, "running", state(t, second, part))
		})
	}

	t.Run("a job of robot runs in a container as an ordinary user", func(t *testing.T) {
		dir := second.Path("job")
		_, err := second.RunAs(t.Context(), "root", "install", "-d", "-o", "robot", dir)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job.sub"), []byte(`universe = vanilla
executable = job.sh
should_transfer_files = YES
output = out
error = err
queue
`), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job.sh"),
			[]byte("#!/bin/sh\napptainer exec --contain /opt/image/busybox id -u\n"), 0o755))
		require.Eventually(
			t,
			func() bool { // condor_submit may wait without end for a schedd that has just been started
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_, err = second.RunAs(ctx, "robot", "sh", "-c", "cd "+dir+" && condor_submit -spool -terse job.sub")
				return err == nil
			},
			2*time.Minute,
			time.Second,
		)
		require.Eventually(t, func() bool {
			out, err := second.Run(
				t.Context(),
				"condor_q",
				"-constraint",
				`Owner == "robot"`,
				"-af",
				"JobStatus",
				"ExitCode",
			)
			return err == nil && out == "4 0\n"
		}, time.Minute, 200*time.Millisecond)
		_, err = second.RunAs(t.Context(), "robot", "condor_transfer_data", "-all")
		require.NoError(t, err)
		out, err := second.RunAs(t.Context(), "robot", "sh", "-c", "id -u && cat "+dir+"/out")
		require.NoError(t, err)
		ids := strings.Fields(out)
		require.Len(t, ids, 2)
		require.Equal(t, ids[0], ids[1])
	})

	t.Run("the node fetches and writes files by https and root", func(t *testing.T) {
		world, err := parts.Open(second)
		require.NoError(t, err)
		for _, server := range []struct{ url, dir string }{
			{fmt.Sprintf("https://127.0.0.1:%d/", world.Ports.Store), second.Path("store", "files")},
			{fmt.Sprintf("root://127.0.0.1:%d//", world.Ports.XRootD), second.Path("xrootd", "files")},
		} {
			scheme, _, _ := strings.Cut(server.url, ":")
			require.NoError(t, os.WriteFile(filepath.Join(server.dir, "in"), []byte(scheme), 0o644))
			dir := second.Path("job-" + scheme)
			_, err := second.RunAs(t.Context(), "root", "install", "-d", "-o", "robot", dir)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "job.sub"), []byte(`universe = vanilla
executable = /bin/cp
transfer_executable = False
arguments = in made
should_transfer_files = YES
transfer_input_files = `+server.url+`in
transfer_output_files = made
transfer_output_remaps = "made = `+server.url+`dir/made"
queue
`), 0o644))
			_, err = second.RunAs(t.Context(), "robot", "sh", "-c", "cd "+dir+" && condor_submit -spool -terse job.sub")
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				text, err := os.ReadFile(filepath.Join(server.dir, "dir", "made"))
				return err == nil && string(text) == scheme
			}, time.Minute, 200*time.Millisecond, scheme)
		}
	})
}

func state(t *testing.T, l *lab.Lab, part string) string {
	t.Helper()
	e, err := l.Ask(t.Context(), lab.Request{Op: lab.OpStatus}, nil)
	require.NoError(t, err)
	for _, p := range e.Parts {
		if p.Part == part {
			return p.State
		}
	}
	t.Fatalf("no part %s", part)
	return ""
}

func TestEndedStartLeavesNothing(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{
		"when it is interrupted": syscall.SIGINT,
		"when it is killed":      syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			cmd := up(t, l, "--without-htcd")
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for lines.Scan() && !strings.Contains(lines.Text(), "etcd: ready") {
			}
			require.NoError(t, syscall.Kill(-cmd.Process.Pid, signal))
			require.Error(t, cmd.Wait())
			require.Eventually(t, func() bool {
				_, err := l.Identity()
				return err != nil
			}, 10*time.Second, 20*time.Millisecond)
			requireNothingLeft(t, l)
		})
	}
}

func TestFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	l := newLab(t)
	cmd := up(t, l)
	cmd.Env = append(os.Environ(), "HTCD_ARGS=--no-such-flag")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "no-such-flag")
	requireNothingLeft(t, l)
}
