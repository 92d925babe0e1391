//go:build !releases

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// notebook is a user's machine: Debian's Python in a container, with the package of clients/python, and a kubeconfig
// with the rights of htcjob-user in the test's namespace.
type notebook struct {
	*trial.Bench
	dir   string // as seen in the lab, too
	image string
}

func newNotebook(t *testing.T, packages string) notebook {
	t.Helper()
	b := trial.New(t)
	dir := b.Lab.Path("user-" + b.Namespace)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	n := notebook{b, dir, b.Image(packages)}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	onHost(t, "cp", "-r", "../../clients/python", filepath.Join(dir, "python"))
	kubeconfig, _ := trial.User(t, b.Namespace)
	onHost(t, "install", "-m", "644", kubeconfig, filepath.Join(dir, "kubeconfig"))
	_, err := b.Lab.RunAs(t.Context(), "root", "install", "-d", "-o", "alice", n.home())
	require.NoError(t, err)
	return n
}

// home is the notebook's working directory.
func (n notebook) home() string { return filepath.Join(n.dir, "home") }

// python runs Python as the user.
func (n notebook) python(args ...string) (string, error) {
	n.T.Helper()
	return n.Lab.RunAs(n.T.Context(), "alice", "apptainer", append([]string{
		"--quiet", "exec", "--contain", "--bind", n.dir, "--pwd", n.home(),
		"--env", "KUBECONFIG=" + filepath.Join(n.dir, "kubeconfig"),
		"--env", "PYTHONPATH=" + filepath.Join(n.dir, "python"), "--env", "PYTHONWARNINGS=ignore",
		n.image, "python3",
	}, args...)...)
}

// runs runs a program.
func (n notebook) runs(program string) (string, error) {
	n.T.Helper()
	file := filepath.Join(n.dir, "notebook.py")
	require.NoError(n.T, os.WriteFile(file, []byte(program), 0o644))
	return n.python(file)
}

func pythonPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/python.md")
	require.NoError(t, err)
	return string(text)
}

// session returns what docs/python.md shows in Python under such a mark; those blocks without one if it is empty.
func session(t *testing.T, mark string) string {
	t.Helper()
	var program strings.Builder
	for _, block := range regexp.MustCompile("(?s)(?:<!-- ([^\n]*) -->\n)?```python\n(.*?)```").
		FindAllStringSubmatch(pythonPage(t), -1) {
		if block[1] == mark {
			program.WriteString(block[2])
		}
	}
	require.NotEmpty(t, program.String())
	return program.String()
}
