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

	"htc.cern.ch/htcd/test/trial"
)

// follow runs commands of the documentation with the lab's own site.
func (b bench) follow(commands string) (out string, err error) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.T.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", "set -euxo pipefail\n"+commands)
	c.Dir = filepath.Dir(deployDir(b.T))
	c.Env = append(os.Environ(), "HTCD_LAB="+b.Lab.Dir, "KUBECONFIG="+b.Lab.Kubeconfig(), "HTCD_LEDGER="+b.Lab.Ledger(),
		"PATH="+b.Lab.Path("bin")+":"+os.Getenv("PATH"),
		"SITE="+b.Lab.Path("node", "overlay"), "ACCOUNT=robot", "PASSWORD_FILE="+b.Lab.Path("node", "password"))
	text, err := c.CombinedOutput()
	return string(text), err
}

// TestWhoFollowsTheDocsHasAnHTCdThatWorks follows the documentation line by line with the lab's own site: it uninstalls
// the running htcd and installs one that works.
func TestWhoFollowsTheDocsHasAnHTCdThatWorks(t *testing.T) {
	b := newBench(t)
	b.ApplyText("{apiVersion: htc.cern.ch/v1alpha1, kind: HTCWorkflow, metadata: {name: left}, " +
		"spec: {steps: [{name: one, job: {script: {image: centos, command: sh, source: exit 0}}}]}}")
	b.Eventually(
		func() bool {
			return b.Kubectl("get", "htcworkflow", "left", "-o", "jsonpath={.metadata.finalizers}") != ""
		},
		func() string { return "htcd has not seen the HTCWorkflow that is to be uninstalled" },
	)
	works := "ok       authorisation" // as the doctor in the pod reports it
	for _, document := range []struct{ name, says string }{
		{"uninstall.md", `namespace "htcd" deleted`}, {"install.md", works}, {"upgrade.md", works}, {"troubleshoot.md", works}, {"day2.md", works},
	} {
		var script strings.Builder
		for _, block := range trial.Blocks(t, filepath.Join(deployDir(t), "..", "docs", document.name)) {
			if block.NotRun == "" {
				script.WriteString(block.Text)
			}
		}
		out, err := b.follow(script.String())
		require.NoError(t, err, "%s: %s", document.name, out)
		require.Contains(t, out, document.says, document.name)
	}
}
