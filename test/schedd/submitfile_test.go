package schedd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
)

// The goldens of submitfile say which jobs a submit file makes, and what the program of each gets as arguments.
// HTCondor 25 refuses further queue statements, and `want25` is where it reads a table otherwise.
func TestEverySubmitFileMakesTheJobsThatCondorSubmitMakes(t *testing.T) {
	t.Parallel()
	version, err := exec.CommandContext(t.Context(), "condor_version").Output()
	require.NoError(t, err)
	older := strings.Contains(string(version), " 23.")
	archives, err := filepath.Glob("../../internal/convert/submitfile/testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Parallel()
			dir, want, one := t.TempDir(), "", true
			for _, f := range goldens(t, strings.TrimPrefix(archive, "../../internal/")) {
				switch f.Name {
				case "want25":
					if !older {
						want = string(f.Data)
					}
					continue
				case "want":
					want = string(f.Data)
					continue
				case "job.sub":
					one = len(queueLine.FindAll(f.Data, -1)) == 1
				}
				path := filepath.Join(dir, f.Name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, f.Data, 0o644))
			}
			ads, err := dryRun(t.Context(), dir)
			if strings.HasPrefix(want, "refused: ") || !older && !one {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			jobs, _, _ := strings.Cut(want, "warning: ")
			require.Equal(t, jobs, jobsOf(t, ads))
		})
	}
}

var queueLine = regexp.MustCompile(`(?m)^queue\b`)

// jobsOf has a line for each job: cluster.proc and the words that its program gets.
func jobsOf(t *testing.T, ads []classad.Ad) string {
	t.Helper()
	var b strings.Builder
	var cluster int64
	var whole classad.Ad
	for _, ad := range ads {
		if ad.Has("ClusterId") { // which the others of the cluster begin with
			cluster, _ = ad.Get("ClusterId").Int()
			whole = ad
		}
		proc, _ := ad.Get("ProcId").Int()
		fmt.Fprintf(&b, "%d.%d", cluster, proc)
		for _, w := range wordsIn(t, append(slices.Clone(whole), ad...)) {
			fmt.Fprintf(&b, " %q", w)
		}
		b.WriteString("\n")
	}
	return b.String()
}
