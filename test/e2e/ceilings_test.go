//go:build !releases

package e2e

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// The policy is bound to the test's namespace: elsewhere htcd itself is to refuse.
func TestTheApiserverRefusesWhatIsMoreThanAPoolsMaximum(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	pool := b.Pool("", "{max: {cpus: 2, memory: 1Gi, gpus: 0, runDeadlineSeconds: 60}}")
	text, err := os.ReadFile("../../deploy/ceilings/ceilings.yaml")
	require.NoError(t, err)
	policy := strings.ReplaceAll(string(text), "htcd-ceilings", pool)
	bound := strings.Replace(
		policy,
		"  paramRef:\n",
		"  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+b.Namespace+"}}}\n  paramRef:\n",
		1,
	)
	require.NotEqual(t, policy, bound)
	b.ApplyText(bound)
	t.Cleanup(func() {
		_, err := b.Lab.RunInput(context.WithoutCancel(t.Context()), bound, "kubectl", "delete", "-f", "-")
		require.NoError(t, err)
	})

	const work = "script: {image: centos, command: sh, source: exit 0}, "
	refusal := func(kind, pool, spec string) string {
		object := "{apiVersion: htc.cern.ch/v1alpha1, kind: " + kind + ", metadata: {name: one}, spec: {pool: {name: " + pool +
			"}, " + spec + "}}"
		_, err := b.Lab.RunInput(
			t.Context(),
			object,
			"kubectl",
			"-n",
			b.Namespace,
			"apply",
			"--dry-run=server",
			"-f",
			"-",
		)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	most := "HTCPool " + pool + " allows a job at most "
	b.Eventually(func() bool {
		return strings.Contains(
			refusal("HTCJob", pool, work+"resources: {cpus: 3}"),
			most+"2 of cpus (max.cpus): ask for less, or name another pool",
		)
	}, func() string { return "the policy has no effect" })
	require.Contains(t, refusal("HTCJob", pool, work+"resources: {memory: 1025Mi}"), most+"1Gi of memory (max.memory)")
	require.Contains(t, refusal("HTCJob", pool, work+"resources: {gpus: 1}"), most+"0 of gpus (max.gpus)")
	require.Contains(
		t,
		refusal("HTCJob", pool, work+"runDeadlineSeconds: 61"),
		most+"60 s of runDeadlineSeconds (max.runDeadlineSeconds)",
	)
	require.Contains(
		t,
		refusal(
			"HTCWorkflow",
			pool,
			"steps: [{name: a, job: {"+work+"}}, {name: b, job: {"+work+"resources: {cpus: 4}}}]",
		),
		most+"2 of cpus",
	)
	require.Empty(
		t,
		refusal("HTCJob", pool, work+"resources: {cpus: 1500m, memory: 1Gi, gpus: 0}, runDeadlineSeconds: 60"),
	)
	require.Empty(t, refusal("HTCJob", "another", work+"resources: {cpus: 3}"))
}
