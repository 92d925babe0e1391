package tool

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func shell(script string) Command {
	return Command{Name: "sh", BinDir: "/bin", Args: []string{"-c", script}, Timeout: 20 * time.Second}
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Command)
		script string
		cause  Cause
		code   int
		words  string
	}{
		"the last words of stderr, on one line": {nil, `printf 'one\n\n  two\tthree\033\n' >&2; exit 4`, Exited, 4, "one | two three␛"},
		"killed from outside":                   {nil, `kill -9 $$`, Exited, -1, ""},
		"too slow":                              {func(c *Command) { c.Timeout = 100 * time.Millisecond }, `sleep 100`, TimedOut, -1, "no answer within 100ms; it was killed"},
		"not there":                             {func(c *Command) { c.Name = "no-such-tool" }, ``, NotStarted, -1, "cannot be started: fork/exec /bin/no-such-tool: no such file or directory"},
		"not in PATH":                           {func(c *Command) { c.Name, c.BinDir = "no-such-tool", "" }, ``, NotStarted, -1, "not found in PATH"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := shell(c.script)
			if c.change != nil {
				c.change(&cmd)
			}
			var f *Failure
			require.ErrorAs(t, Run(t.Context(), cmd), &f)
			require.Equal(t, c.cause, f.Cause)
			require.Equal(t, c.code, f.ExitCode)
			require.Equal(t, c.words, f.Words)
		})
	}
	cmd := shell("cat; pwd")
	var out bytes.Buffer
	cmd.Stdin, cmd.Dir, cmd.Read = "in\n", "/usr", Output(&out)
	require.NoError(t, Run(t.Context(), cmd))
	require.Equal(t, "in\n/usr\n", out.String())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var f *Failure
	require.ErrorAs(t, Run(ended, cmd), &f)
	require.Equal(t, Interrupted, f.Cause)
	require.ErrorIs(t, f, context.Canceled)
}

const (
	orphanVariable = "TOOL_TEST_PID_FILE"
	anewVariable   = "TOOL_TEST_ANEW" // a file whose appearance makes the parent execute another program
)

// In the helper process the main thread is reserved, so that another thread starts the tool.
func init() {
	if os.Getenv(orphanVariable) != "" {
		runtime.LockOSThread()
	}
}

// TestHelperProcess is the process that TestAToolDiesWithItsParent kills.
func TestHelperProcess(t *testing.T) {
	file := os.Getenv(orphanVariable)
	if file == "" {
		return
	}
	require.NotEqual(t, os.Getpid(), unix.Gettid())
	go func() {
		for {
			if _, err := os.Stat(os.Getenv(anewVariable)); err == nil {
				_ = syscall.Exec("/bin/sleep", []string{"sleep", "20"}, nil)
			}
		}
	}()
	_ = Run(t.Context(), shell("echo $$ >"+file+".new; mv "+file+".new "+file+"; exec sleep 20"))
}

func TestAToolDiesWithItsParent(t *testing.T) {
	for name, end := range map[string]func(parent *exec.Cmd, anew string) error{
		"that is killed":                 func(parent *exec.Cmd, _ string) error { return parent.Process.Kill() },
		"that puts another in its place": func(_ *exec.Cmd, anew string) error { return os.WriteFile(anew, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			parent, pid, anew := begin(t)
			require.DirExists(t, "/proc/"+pid)
			require.NoError(t, end(parent, anew))
			require.Eventually(t, func() bool { return dead(t, pid) }, 5*time.Second, 5*time.Millisecond)
		})
	}
}

// When the parent is known to be dead, the tool executes no further instruction.
func TestAToolIsKilledBeforeItsParentsDeathIsKnown(t *testing.T) {
	for range 10 {
		parent, pid, _ := begin(t)
		require.NoError(t, parent.Process.Kill())
		_ = parent.Wait()
		// Between taking the signal and ending, which are some microseconds, a process shows neither.
		require.True(t, killed(t, pid) || ending(t, pid) || ending(t, pid))
	}
}

// begin starts the helper process and returns it, the pid of its tool, and the file that makes it execute another
// program.
func begin(t *testing.T) (parent *exec.Cmd, pid, anew string) {
	t.Helper()
	file, anew := filepath.Join(t.TempDir(), "pid"), filepath.Join(t.TempDir(), "anew")
	parent = exec.Command(os.Args[0], "-test.run", "^TestHelperProcess$")
	parent.Env = append(os.Environ(), orphanVariable+"="+file, anewVariable+"="+anew)
	require.NoError(t, parent.Start())
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	})
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		pid = strings.TrimSpace(string(b))
		return err == nil
	}, 10*time.Second, 5*time.Millisecond)
	return parent, pid, anew
}

// dead reports whether a process is gone or a zombie.
func dead(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// ending reports whether a process is dead or about to be: the kernel takes it apart (PF_EXITING, among the flags in
// its stat).
func ending(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	require.NoError(t, err)
	return string(fields[0]) == "Z" || flags&0x4 != 0
}

// killed reports whether a process has a pending SIGKILL, which nothing can revoke.
func killed(t *testing.T, pid string) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(status)) {
		if mask, is := strings.CutPrefix(line, "SigPnd:"); is {
			pending, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			require.NoError(t, err)
			return pending&(1<<(syscall.SIGKILL-1)) != 0
		}
	}
	return false
}
