package tool

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		"the last words of stderr, on one line": {nil, `printf 'one\n\n  two\tthree\033\n' >&2; exit 4`, Exited, 4, "one | two three"},
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
	anewVariable   = "TOOL_TEST_ANEW" // a file that asks the parent to become another program
)

// TestHelperProcess is the process that TestAToolDiesWithItsParent ends.
func TestHelperProcess(t *testing.T) {
	file := os.Getenv(orphanVariable)
	if file == "" {
		return
	}
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
	for name, end := range map[string]func(parent *os.Process, anew string) error{
		"that is killed":                 func(parent *os.Process, _ string) error { return parent.Kill() },
		"that puts another in its place": func(_ *os.Process, anew string) error { return os.WriteFile(anew, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			file, anew := filepath.Join(t.TempDir(), "pid"), filepath.Join(t.TempDir(), "anew")
			parent := exec.Command(os.Args[0], "-test.run", "^TestHelperProcess$")
			parent.Env = append(os.Environ(), orphanVariable+"="+file, anewVariable+"="+anew)
			require.NoError(t, parent.Start())
			t.Cleanup(func() {
				_ = parent.Process.Kill()
				_ = parent.Wait()
			})
			var pid string
			require.Eventually(t, func() bool {
				b, err := os.ReadFile(file)
				pid = strings.TrimSpace(string(b))
				return err == nil
			}, 10*time.Second, 5*time.Millisecond)
			require.DirExists(t, "/proc/"+pid)
			require.NoError(t, end(parent.Process, anew))
			require.Eventually(t, func() bool {
				stat, err := os.ReadFile("/proc/" + pid + "/stat")
				return err != nil || bytes.Contains(stat, []byte(") Z "))
			}, 5*time.Second, 5*time.Millisecond)
		})
	}
}
