package logspod

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/output"
)

var attempt = output.Attempt{Namespace: "physics", Name: "hello", Number: 1}

// put writes a job's output.
func put(t *testing.T, s output.Store, proc int, stdout, stderr string) {
	t.Helper()
	dir, err := s.ProcDir(attempt, proc)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, output.Stdout), []byte(stdout), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, output.Stderr), []byte(stderr), 0o600))
}

// printed composes a text, prints it, and returns the streams and both together.
func printed(t *testing.T, text Text) (stdout, stderr, both string) {
	t.Helper()
	files, err := text.Compose()
	require.NoError(t, err)
	dir := t.TempDir()
	size := 0
	for name, content := range files {
		size += len(content)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	require.LessOrEqual(t, size, MaxSize)
	var out, err2, all bytes.Buffer
	require.NoError(t, Print(dir, &out, &err2, 0))
	require.NoError(t, Print(dir, &all, &all, 0))
	return out.String(), err2.String(), all.String()
}

func TestAText(t *testing.T) {
	job := func(proc int) Job {
		return Job{Proc: proc, ID: fmt.Sprintf("7.%d", proc), Note: "it was removed"}
	}
	for name, c := range map[string]struct {
		streams [][2]string
		text    Text
		want    string
		err     string
	}{
		"one job is printed as it is": {
			[][2]string{{"hello\nno line break", ""}}, Text{Jobs: []Job{job(0)}, All: 1}, "hello\nno line break", "",
		},
		"both streams of one job": {
			[][2]string{{"hello\n", "oops\n"}}, Text{Jobs: []Job{job(0)}, All: 1}, "hello\noops\n", "oops\n",
		},
		"of several jobs each has a head line": {
			[][2]string{{"a", "x"}, {"b\n", ""}}, Text{Jobs: []Job{job(0), job(1)}, All: 2},
			"==> 7.0 <==\nax\n==> 7.1 <==\nb\n", "x\n",
		},
		"a job that left nothing is told": {
			[][2]string{{"a\n", ""}}, Text{Jobs: []Job{job(0), job(1)}, All: 2},
			"==> 7.0 <==\na\n==> 7.1 <==\nhtcd: no output of job 7.1: it was removed\n", "htcd: no output of job 7.1: it was removed\n",
		},
		"nothing was ever sent": {nil, Text{Note: "Refused: line 1"}, "htcd: Refused: line 1\n", "htcd: Refused: line 1\n"},
		"not all jobs are there": {
			[][2]string{{"a\n", ""}}, Text{Jobs: []Job{job(0)}, All: 9},
			"htcd: only the first 1 of 9 jobs are here; `kubectl htcjob logs hello -n physics --all` shows all\n==> 7.0 <==\na\n",
			"htcd: only the first 1 of 9 jobs are here; `kubectl htcjob logs hello -n physics --all` shows all\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.text.Store, c.text.Attempt = output.Store{Root: t.TempDir()}, attempt
			for proc, s := range c.streams {
				put(t, c.text.Store, proc, s[0], s[1])
			}
			_, stderr, both := printed(t, c.text)
			require.Equal(t, c.want, both)
			require.Equal(t, c.err, stderr)
		})
	}
}

func TestOfALongStreamTheEndIsShown(t *testing.T) {
	s := output.Store{Root: t.TempDir()}
	long := strings.Repeat("a line of the job\n", 1<<16)
	put(t, s, 0, long+"the end\n", "short\n")
	stdout, stderr, _ := printed(t, Text{Store: s, Attempt: attempt, Jobs: []Job{{ID: "7.0"}}, All: 1})
	require.True(t, strings.HasPrefix(stdout, "a line of the job\n"), "it begins with a whole line")
	require.True(t, strings.HasSuffix(stdout, "the end\n"))
	require.Greater(t, len(stdout), MaxSize/2)
	require.Equal(
		t,
		"htcd: of 1 stream only the last 510 KiB are here; `kubectl htcjob logs hello -n physics` shows all\nshort\n",
		stderr,
	)
}

func TestManyJobsFit(t *testing.T) {
	s := output.Store{Root: t.TempDir()}
	text := Text{Store: s, Attempt: attempt, All: 100000, Note: ""}
	for proc := range MaxJobs {
		text.Jobs = append(
			text.Jobs,
			Job{Proc: proc, ID: fmt.Sprintf("123456.%d", proc), Note: strings.Repeat("x", 4096)},
		)
		if proc%2 == 0 {
			put(t, s, proc, strings.Repeat("o\n", 3000), strings.Repeat("e\n", proc))
		}
	}
	_, _, both := printed(t, text)
	require.Contains(t, both, "and only the first 1000 of 100000 jobs")
	require.Equal(t, MaxJobs, strings.Count(both, "==> 123456."))
}

func TestWhatAJobLeavesInPlaceOfAStreamIsNotRead(t *testing.T) {
	s := output.Store{Root: t.TempDir()}
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("the ledger"), 0o600))
	dir, err := s.ProcDir(attempt, 0)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, output.Stdout)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, output.Stderr), []byte("mine\n"), 0o600))
	_, _, both := printed(t, Text{Store: s, Attempt: attempt, Jobs: []Job{{ID: "7.0"}}, All: 1})
	require.Equal(t, "mine\n", both)
}

func TestWhatIsNoTextIsNotPrinted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000.txt"), nil, 0o600))
	require.ErrorContains(t, Print(dir, nil, nil, 0), "00000.txt")
	require.NoError(t, Print(filepath.Join(dir, "nowhere"), nil, nil, 0), "no text is an empty one")
}
