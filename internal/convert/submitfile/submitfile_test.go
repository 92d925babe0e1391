package submitfile_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// TestGolden reads job.sub of each archive, beside its other files, and compares the words that the jobs' programs get,
// and what is said of the file, with `want`; `want25` is what HTCondor 25 makes of it. test/schedd compares the words
// with those of the real condor_submit.
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, path := range archives {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			require.NoError(t, err)
			files, want := fstest.MapFS{}, -1
			for i, f := range archive.Files {
				switch f.Name {
				case "want":
					want = i
					continue
				case "want25":
					continue
				}
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			require.GreaterOrEqual(t, want, 0)
			got := read(files["job.sub"].Data, files)
			if os.Getenv("UPDATE") != "" {
				archive.Files[want].Data = []byte(got)
				require.NoError(t, os.WriteFile(path, txtar.Format(archive), 0o600))
				return
			}
			require.Equal(t, string(archive.Files[want].Data), got)
		})
	}
}

// read says what a file comes to.
func read(text []byte, files fstest.MapFS) string {
	var b strings.Builder
	file, err := submitfile.Parse("job.sub", text)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	out := file.Expand(env(files))
	for i, cluster := range out.Clusters {
		for _, queue := range cluster.Queues {
			for n := range queue.Len() {
				job := queue.Job(n)
				fmt.Fprintf(&b, "%d.%d%s\n", i+1, job.Proc, words(job))
			}
		}
	}
	for _, w := range out.Warnings {
		fmt.Fprintln(&b, "warning:", w.Error())
	}
	for _, p := range out.Problems {
		fmt.Fprintln(&b, "refused:", p.Error())
	}
	return b.String()
}

func words(job submitfile.Job) string {
	value, _, err := job.Value("arguments", "args")
	if err != nil {
		return " " + err.Error()
	}
	all, err := submitfile.Arguments(value)
	if err != nil {
		return " " + err.Error()
	}
	var b strings.Builder
	for _, w := range all {
		fmt.Fprintf(&b, " %q", w)
	}
	return b.String()
}

func env(files fstest.MapFS) submitfile.Env {
	return submitfile.Env{
		Variable: func(name string) (string, bool) { return "ada", name == "USER" },
		ReadFile: func(path string) ([]byte, error) { return fs.ReadFile(files, path) },
		Glob: func(pattern string) ([]string, error) {
			found, err := fs.Glob(files, pattern)
			for i, path := range found {
				if info, err := fs.Stat(files, path); err == nil && info.IsDir() {
					found[i] += "/"
				}
			}
			return found, err
		},
	}
}

// TestDay has the macros for the day on which a file is submitted, and refuses those for the machine.
func TestDay(t *testing.T) {
	env := submitfile.Env{Now: time.Date(2026, 3, 7, 1, 2, 3, 0, time.UTC)}
	for text, want := range map[string]string{
		"$(YEAR)-$(Month)-$(day)": "2026-03-07", "$(SUBMIT_TIME)": "1772845323", "$(OPSYSANDVER:Debian13)": "Debian13",
		"$(OpSysAndVer)": "$(OpSysAndVer) is that of the machine where condor_submit runs: write the value",
	} {
		file, err := submitfile.Parse("job.sub", []byte("executable = a\narguments = "+text+"\nqueue\n"))
		require.NoError(t, err)
		got, _, err := file.Expand(env).Clusters[0].Queues[0].Job(0).Value("arguments")
		if err != nil {
			got = err.Error()
		}
		require.Equal(t, want, got)
	}
}
