package schedd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// edit changes an attribute of the run's jobs without htcd's knowledge.
func (b *bench) edit(attribute, value string) {
	b.t.Helper()
	cmd := exec.CommandContext(
		b.t.Context(),
		"condor_qedit",
		"-constraint",
		string(b.d.Tag.Constraint()),
		attribute,
		value,
	)
	cmd.Env = append(
		os.Environ(),
		"CONDOR_CONFIG="+b.options().CondorConfig,
		"KRB5_CONFIG="+b.options().Krb5Config,
		"KRB5CCNAME="+b.id.CCache,
	)
	out, err := cmd.CombinedOutput()
	require.NoError(b.t, err, "%s", out)
}

// filesOf returns what a transfer of the run's only job brings, by file name.
func (b *bench) filesOf(cluster condor.Cluster) (files map[string]string, err error) {
	b.t.Helper()
	dir := b.t.TempDir()
	require.NoError(b.t, os.Mkdir(filepath.Join(dir, "0"), 0o700))
	err = b.Transfer(b.t.Context(), b.id, schedd.Procs{Tag: b.d.Tag, Cluster: cluster.ID, Numbers: []int{0}}, dir)
	files = map[string]string{}
	entries, readErr := os.ReadDir(filepath.Join(dir, "0"))
	require.NoError(b.t, readErr)
	for _, e := range entries {
		text, readErr := os.ReadFile(filepath.Join(dir, "0", e.Name()))
		require.NoError(b.t, readErr)
		files[e.Name()] = string(text)
	}
	return files, err
}

// A job whose wrapper cannot give a file another name leaves commas in names.
func TestWhatHTCondorDoesNotHaveKeepsNothingElseFromComing(t *testing.T) {
	for name, lost := range map[string]string{"a name that is taken for two": "", "a file that is gone": "lost"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.d.Source = "echo out; echo 1 > there; echo 2 > a,b\n"
			b.d.Allow = []string{"environment"}
			b.d.Options = fmt.Sprintf(
				"environment = \"PATH=%s\"\n",
				b.pathWithMv("case $* in *.htcd-name-*) echo no >&2; exit 1 ;; esac"),
			)
			cluster := b.submit()
			b.until("completed", func(j condor.Job) bool { return j.Status == condor.Completed })
			if lost != "" {
				b.edit("SpooledOutputFiles", `"a,b,there,`+lost+`"`)
			}
			for range 2 { // the second run has the list again
				files, err := b.filesOf(cluster)
				require.Equal(t, "no\n", files[condor.Stderr])
				delete(files, condor.Stderr)
				require.Equal(t, map[string]string{condor.Stdout: "out\n", "there": "1\n", "a,b": "2\n"}, files)
				if lost == "" {
					require.NoError(t, err)
					continue
				}
				var lacking *schedd.TransferError
				require.ErrorAs(t, err, &lacking)
				require.Equal(t, []string{lost}, lacking.Lacks)
				require.True(t, lacking.Gone())
			}
		})
	}
}
