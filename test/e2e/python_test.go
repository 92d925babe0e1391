//go:build !releases

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheNotebookOfTheDocsRunsToItsResults runs what docs/python.md shows in Debian's Python, with the rights that it
// names.
func TestTheNotebookOfTheDocsRunsToItsResults(t *testing.T) {
	t.Parallel()
	n := newNotebook(t, "notebook")
	n.Kubectl("create", "rolebinding", "files", "--clusterrole=htcjob-input-files",
		"--serviceaccount="+n.Namespace+":anna")
	// With HTCondor 25 the Python of the lab's own image is newer than the notebook's.
	said, err := n.runs(strings.ReplaceAll(session(t, ""), "python:3.13", n.Image("python")) + `
assert squares.results() == [1, 4, 9], squares
assert [job.exception() is None for job in scan] == [True, False], scan
assert open("results/0/fit.txt").read() == "7000 ee\n"
`)
	require.NoError(t, err, said)
	require.Contains(t, said, "exit code 1\nno channel none", "an error carries the end of stderr")
	require.Contains(t, pythonPage(t), "exit code 1\nno channel none", "as the page shows it")
}
