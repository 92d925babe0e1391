package submit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestEachProcGetsItsOwnItemOnly(t *testing.T) {
	d := description()
	d.Queue, d.Items = 2, []string{"A=1\nB=x y\n", "A=2\n"}
	d.Environment = map[string]string{"A": "0"}
	s, err := d.Render()
	require.NoError(t, err)
	text := textOf(s, FileSubmit)
	require.Contains(t, text, "\ntransfer_input_files = script, .environment, .own-$(ProcId)\n")
	require.NotContains(t, text, "x y", "the description becomes the ad, which is public")
	require.NotContains(t, textOf(s, fileJob), "x y")

	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "tok"))
	require.NoFileExists(t, filepath.Join(dir, fileToken), "it would be one file more for each job")
	for proc, item := range d.Items {
		name := filepath.Join(dir, fmt.Sprint(".own-", proc))
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "tok\n\n"+item, string(got))
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
}

func TestItemsThatDoNotFitAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		items []string
		words string
	}{
		"fewer than jobs":            {[]string{"A=1\n"}, "1 items for 2 jobs"},
		"no line break":              {[]string{"A=1\n", "A=2"}, "the variables of job 1: expected lines NAME=value"},
		"nothing":                    {[]string{"A=1\n", ""}, "expected lines NAME=value"},
		"a bad name":                 {[]string{"A=1\n", "A B=2\n"}, "expected lines NAME=value"},
		"a line without a name":      {[]string{"A=1\n", "A=1\n\n"}, "expected lines NAME=value"},
		"a NUL":                      {[]string{"A=1\n", "A=\x00\n"}, "expected lines NAME=value"},
		"too much, with environment": {[]string{"A=1\n", "A=" + strings.Repeat("x", 63<<10) + "\n"}, "the variables of job 1 and spec.environment: expected at most 64 KiB together"},
	} {
		d := description()
		d.Queue, d.Items = 2, c.items
		d.Environment = map[string]string{"B": strings.Repeat("x", 2<<10)}
		_, err := d.Render()
		require.ErrorContains(t, err, c.words, name)
		require.Equal(t, condor.Refused, condor.KindOf(err), name)
	}
}

// The one macro besides the number's stands at one place only.
func TestTheMacroOfItemsStandsInTheListOfFilesOnly(t *testing.T) {
	d := description()
	d.Items = []string{"A=1\n"}
	text, err := submitText(d)
	require.NoError(t, err)
	require.NoError(t, checkWritten(text))
	for _, bad := range []string{
		strings.Replace(text, "output = ", "output = .own-$(ProcId), .own-$(ProcId)", 1),
		strings.Replace(text, "script, .own", "$(script), .own", 1),
		strings.Replace(text, ".own-$(ProcId)", ".own-$(ProcId), .own-$(ProcId)", 1),
	} {
		require.ErrorContains(t, checkWritten(bad), "found the macro")
	}
	d.Options = "transfer_output_files = .own-0\n"
	_, err = d.Render()
	require.ErrorContains(t, err, "expected a path inside the job's directory")
}

func TestAFewLongItemsAmongManyDoNotMakeAFileForEachJob(t *testing.T) {
	long := "A=" + strings.Repeat("x", 40<<10) + "\n"
	for name, c := range map[string]struct {
		jobs, long, files int
	}{
		"short ones":               {100_000, 0, 391},
		"one is long":              {100_000, 1, 391},
		"some beside one another":  {100_000, 20, 391},
		"most of them":             {20, 20, 20},
		"one of a few":             {256, 1, 2},
		"one of two":               {2, 1, 2},
		"one more than a file has": {257, 0, 2},
	} {
		d := description()
		d.Queue, d.Items = c.jobs, slices.Repeat([]string{"A=1\n"}, c.jobs)
		d.Parallelism = c.jobs
		for i := range c.long {
			d.Items[i] = long
		}
		require.Len(t, d.itemFiles(), c.files, name)
	}
}
