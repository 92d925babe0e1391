//go:build node

package node

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// A site without deploy/components/output that has deleted the APIService of its earlier overlay.
func TestWithoutTheComponentNothingHoldsUpADeletionWhenThereIsNoReplica(t *testing.T) {
	b := newBench(t)
	b.leader(1, "")
	site := b.Lab.Path("node", "overlay")
	kubectl := func(ctx context.Context, args ...string) string {
		out, err := b.Lab.Run(ctx, "kubectl", args...)
		require.NoError(t, err)
		return out
	}
	apply := func(ctx context.Context, dir string) {
		kubectl(ctx, "apply", "-k", dir)
		kubectl(ctx, "-n", parts.PodNamespace, "rollout", "status", "deployment/htcd", "--timeout=90s")
	}
	t.Cleanup(func() { apply(context.WithoutCancel(t.Context()), site) })
	plain := b.Lab.Path("node", "plain")
	require.NoError(t, os.RemoveAll(plain))
	require.NoError(t, os.CopyFS(plain, os.DirFS(site)))
	file := filepath.Join(plain, "kustomization.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	without := regexp.MustCompile(`, "[^"]*/components/output"`).ReplaceAll(text, nil)
	require.NotEqual(t, string(text), string(without))
	require.NoError(t, os.WriteFile(file, without, 0o600))

	apply(t.Context(), plain)
	doctor := func() string {
		out, _ := b.Lab.Run(
			t.Context(),
			"kubectl",
			"-n",
			parts.PodNamespace,
			"exec",
			"deploy/htcd",
			"--",
			"htcd",
			"doctor",
		)
		return out
	}
	b.Eventually(
		func() bool { return strings.Contains(doctor(), "no namespace in the cluster can be deleted") },
		doctor,
	)
	kubectl(t.Context(), "delete", "apiservice", "v1alpha1.output.htc.cern.ch")
	b.Eventually(func() bool { return strings.Contains(doctor(), "skipped  output") }, doctor)

	b.htcd("scale", "deployment/htcd", "--replicas=0")
	b.Eventually(func() bool { return len(b.pods()) == 0 }, func() string { return b.htcd("describe", "pods") })
	unrelated := b.Namespace + "-unrelated"
	kubectl(t.Context(), "create", "namespace", unrelated)
	kubectl(t.Context(), "delete", "namespace", unrelated, "--timeout="+trial.Patience.String())
}
