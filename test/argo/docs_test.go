//go:build argo

package argo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// A new user follows docs/argo.md from its first line to its last.
func TestTheCommandsOfTheDocsWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	clone, err := lab.CloneAround(".")
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := os.ReadFile(b.Lab.Kubeconfig())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kubeconfig, text, 0o600))
	b.Kubectl("--kubeconfig", kubeconfig, "config", "set-context", "--current", "--namespace", b.Namespace)

	var script strings.Builder
	for _, block := range trial.Blocks(t, filepath.Join(clone, "docs", "argo.md")) {
		script.WriteString(block.Text)
	}
	commands := strings.NewReplacer(
		"/tmp/",
		t.TempDir()+"/",
		"namespace: default",
		"namespace: "+b.Namespace,
	).Replace(
		script.String(),
	)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", `set -euo pipefail
kubectl() { command kubectl --kubeconfig "$KUBECONFIG" "$@"; } # the lab's has one of its own
set -x
`+commands)
	c.Dir = clone
	c.Env = append(
		os.Environ(),
		"HTCD_LAB="+b.Lab.Dir,
		"KUBECONFIG="+kubeconfig,
		"HTCD_IMAGE=localhost/htcd:dev",
		"PATH="+b.Lab.Path("bin")+":"+os.Getenv("PATH"),
	)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "\nno such file: geometry.db\n", "the failed step's standard error")
}
