//go:build node

package node

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

// TestWhoFollowsTheDocsHasAnHTCdThatWorks follows the documentation line by line with the lab's own site: it uninstalls
// the running htcd and installs one that works.
func TestWhoFollowsTheDocsHasAnHTCdThatWorks(t *testing.T) {
	b := newBench(t)
	clone, err := lab.CloneAround(".")
	require.NoError(t, err)
	works := "ok       authorisation" // as the doctor in the pod reports it
	for _, document := range []struct{ name, says string }{
		{"uninstall.md", `namespace "htcd" deleted`}, {"install.md", works}, {"upgrade.md", works}, {"troubleshoot.md", works}, {"day2.md", works},
	} {
		var script strings.Builder
		for _, block := range trial.Blocks(t, filepath.Join(clone, "docs", document.name)) {
			if block.NotRun == "" {
				script.WriteString(block.Text)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "bash", "-c", "set -euxo pipefail\n"+script.String())
		c.Dir = clone
		c.Env = append(os.Environ(), "HTCD_LAB="+b.Lab.Dir, "KUBECONFIG="+b.Lab.Kubeconfig(), "HTCD_LEDGER="+b.Lab.Ledger(),
			"PATH="+b.Lab.Path("bin")+":"+os.Getenv("PATH"),
			"SITE="+b.Lab.Path("node", "overlay"), "ACCOUNT=robot", "PASSWORD_FILE="+b.Lab.Path("node", "password"))
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s: %s", document.name, out)
		require.Contains(t, string(out), document.says, document.name)
	}
}
