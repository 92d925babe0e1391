//go:build node

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/lab/root"
	"htc.cern.ch/htcd/test/trial"
)

// labValues writes what the lab's overlay holds as values of the chart.
func (b bench) labValues(t *testing.T) (file string) {
	t.Helper()
	over := b.Lab.Path("node", "overlay")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(over, name))
		require.NoError(t, err)
		return string(text)
	}
	settings := map[string]string{}
	for line := range strings.Lines(read("settings.env")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[name] = value
	}
	text, err := yaml.Marshal(map[string]any{
		"image": map[string]any{"repository": "localhost/htcd", "tag": "dev"},
		"condor": map[string]any{
			"config": read("condor_config"),
		},
		"kerberos":    map[string]any{"config": read("krb5.conf")},
		"settings":    settings,
		"output":      map[string]any{"enabled": true},
		"logsPod":     map[string]any{"enabled": true},
		"hostAliases": []any{map[string]any{"ip": root.NodeAddress, "hostnames": []string{"htcd.example.org"}}},
	})
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// The release takes over what kustomize has installed, ledger included, and leaves it to kustomize again.
func TestHelmInstallsUpgradesAndRollsBack(t *testing.T) {
	b := newBench(t)
	b.Script("before", "exit 0\n")
	b.Ended("before")
	chart, site := filepath.Join(deployDir(t), "helm", "htcd"), b.labValues(t)
	helm := func(args ...string) string {
		out, err := b.Lab.Run(
			t.Context(),
			"helm",
			append([]string{"-n", parts.PodNamespace, "--timeout=90s"}, args...)...)
		require.NoError(t, err)
		return out
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := b.Lab.Run(ctx, "helm", "-n", parts.PodNamespace, "uninstall", "htcd", "--ignore-not-found")
		require.NoError(t, err)
		b.install(ctx, b.Lab.Path("node", "overlay"))
	})
	notes := helm("install", "htcd", chart, "-f", site, "--take-ownership", "--wait")
	require.NotContains(t, notes, "It waits for the pool account")
	require.Contains(t, notes, "still name example.org", "the lab's host does")
	installed := b.leader(1, "")
	b.Script("installed", "exit 0\n")
	b.Ended("installed")

	helm(
		"upgrade",
		"htcd",
		chart,
		"-f",
		site,
		"--set-string",
		"settings.HTCD_MAX_QUEUE=2",
		"--set",
		"pools[0].name=of-the-chart,pools[0].spec.state=Online",
		"--wait",
	)
	b.Kubectl("get", "htcpool", "of-the-chart")
	limit := func() string {
		return b.htcd("get", "configmap", "htcd-settings", "-o", "jsonpath={.data.HTCD_MAX_QUEUE}")
	}
	require.Equal(t, "2", limit())
	upgraded := b.leader(1, installed.Name)

	helm("rollback", "htcd", "--wait")
	_, err := b.Lab.Run(t.Context(), "kubectl", "get", "htcpool", "of-the-chart")
	require.ErrorContains(t, err, "NotFound")
	require.Empty(t, limit())
	b.leader(1, upgraded.Name) // the pod was restarted with it
	b.Script("rolled-back", "exit 0\n", trial.Queue(3))
	b.Ended("rolled-back")

	helm("uninstall", "htcd", "--wait")
	b.htcd("get", "pvc/htcd", "crd/htcjobs.htc.cern.ch")
	require.EqualValues(t, 3, b.Ended("rolled-back").Status.Succeeded)
	b.install(t.Context(), b.Lab.Path("node", "overlay"))
	b.leader(1, "")
	require.EqualValues(t, 1, b.Ended("before").Status.Succeeded)
	b.Kubectl("delete", "htcjobs", "--all", "--timeout="+trial.Patience.String())
}
