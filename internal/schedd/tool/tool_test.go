package tool

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

const orphanVariable = "TOOL_TEST_PID_FILE"

// TestHelperProcess is the process that TestAToolDiesWithItsParent kills.
func TestHelperProcess(t *testing.T) {
	if file := os.Getenv(orphanVariable); file != "" {
		_ = Run(t.Context(), shell("echo $$ >"+file+".new; mv "+file+".new "+file+"; exec sleep 20"))
	}
}

func TestAToolDiesWithItsParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command(os.Args[0], "-test.run", "^TestHelperProcess$")
	parent.Env = append(os.Environ(), orphanVariable+"="+file)
	require.NoError(t, parent.Start())
	var pid string
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		pid = strings.TrimSpace(string(b))
		return err == nil
	}, 10*time.Second, 5*time.Millisecond)
	require.DirExists(t, "/proc/"+pid)
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	}, 5*time.Second, 5*time.Millisecond)
}
