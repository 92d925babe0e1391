//go:build !releases

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab/cache"
	"htc.cern.ch/htcd/test/trial"
)

// TestTheNotebookOfTheDocsRunsToItsResults runs what docs/python.md shows in Debian's Python, with the rights that it
// names.
func TestTheNotebookOfTheDocsRunsToItsResults(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	text, err := os.ReadFile("../../docs/python.md")
	require.NoError(t, err)
	var session strings.Builder
	for _, block := range regexp.MustCompile("(?s)(<!-- not run: [^\n]*\n)?```python\n(.*?)```").FindAllSubmatch(text, -1) {
		if len(block[1]) == 0 {
			session.Write(block[2])
		}
	}
	// The lab's image has the Python of the notebook's.
	program := strings.ReplaceAll(session.String(), "python:3.13", "python") + `
assert squares.results() == [1, 4, 9], squares
assert [job.exception() is None for job in scan] == [True, False], scan
assert open("results/0/fit.txt").read() == "7000 ee\n"
`
	c, err := cache.Default(t.Logf)
	require.NoError(t, err)
	debian, err := c.DebianRoot(t.Context(), cache.DefaultCondor)
	require.NoError(t, err)
	layer, err := c.Image(t.Context(), debian, "notebook", cache.Images["notebook"])
	require.NoError(t, err)

	kubeconfig, _ := trial.User(t, b.Namespace)
	b.Kubectl("create", "rolebinding", "files", "--clusterrole=htcjob-input-files",
		"--serviceaccount="+b.Namespace+":anna")
	dir := b.Lab.Path("notebook-" + b.Namespace)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	s := snake{b, dir}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "image"), 0o755))
	s.host("tar", "-xzf", layer, "-C", filepath.Join(dir, "image"))
	s.host("cp", "-r", "../../clients/python/htc", dir)
	s.host("install", "-m", "644", kubeconfig, filepath.Join(dir, "kubeconfig"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notebook.py"), []byte(program), 0o644))
	_, err = b.Lab.RunAs(t.Context(), "root", "install", "-d", "-o", "alice", filepath.Join(dir, "home"))
	require.NoError(t, err)

	said, err := b.Lab.RunAs(t.Context(), "alice", "apptainer", "--quiet", "exec", "--contain", "--bind", dir,
		"--pwd", filepath.Join(dir, "home"), "--env", "KUBECONFIG="+filepath.Join(dir, "kubeconfig"),
		"--env", "PYTHONPATH="+dir, "--env", "PYTHONWARNINGS=ignore",
		filepath.Join(dir, "image"), "python3", filepath.Join(dir, "notebook.py"))
	require.NoError(t, err, said)
	require.Contains(t, said, "exit code 1\nno channel none", "an error carries the end of stderr")
	require.True(t, bytes.Contains(text, []byte("exit code 1\nno channel none")), "as the page shows it")
}
