package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
)

// What takes long, the programs, is compared by `make dist-check`.
func TestARelease(t *testing.T) {
	t.Parallel()
	running, err := lab.Find()
	require.NoError(t, err)
	var dirs [2]string
	for i := range dirs {
		dirs[i] = t.TempDir()
		c := exec.CommandContext(t.Context(), "../../tools/dist.sh", "v0.9.0", dirs[i])
		c.Env = append(os.Environ(), "KUBECTL="+running.Bin("kubectl"), "HTCD_LAB="+running.Dir, "PLATFORMS=", "IMAGE=registry.example.org/htcd")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	out, err := exec.CommandContext(t.Context(), "diff", "-r", dirs[0], dirs[1]).CombinedOutput()
	require.NoError(t, err, "two runs differ: %s", out)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = dirs[0]
	out, err = check.CombinedOutput()
	require.NoError(t, err, "%s", out)

	overlays, err := filepath.Glob("../../deploy/overlays/*")
	require.NoError(t, err)
	for _, dir := range overlays {
		if name := filepath.Base(dir); name != "site" { // a template
			require.FileExists(t, filepath.Join(dirs[0], "install-"+name+".yaml"))
		}
	}
	text, err := os.ReadFile(filepath.Join(dirs[0], "install.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "image: registry.example.org/htcd:v0.9.0\n")
	crds, err := os.ReadFile(filepath.Join(dirs[0], "crds.yaml"))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(crds), "\nkind: CustomResourceDefinition\n"))
	require.Contains(t, string(text), strings.TrimSpace(string(crds)))
	said, err := running.Run(t.Context(), "kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", filepath.Join(dirs[0], "crds.yaml"))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(said, "(server dry run)"), said)

	again := exec.CommandContext(t.Context(), "../../tools/dist.sh", "v0.9.0", dirs[0])
	out, err = again.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "is not empty")
}
