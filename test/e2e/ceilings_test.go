//go:build !releases

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// bindCeilings installs the policy for the test's namespace alone, with this name: elsewhere htcd itself is to refuse.
func bindCeilings(b *trial.Bench, name string) {
	b.T.Helper()
	text, err := os.ReadFile("../../deploy/ceilings/ceilings.yaml")
	require.NoError(b.T, err)
	policy := strings.ReplaceAll(string(text), "htcd-ceilings", name)
	bound := strings.Replace(
		policy,
		"  paramRef:\n",
		"  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+b.Namespace+"}}}\n  paramRef:\n",
		1,
	)
	require.NotEqual(b.T, policy, bound)
	b.ApplyText(bound)
	b.T.Cleanup(func() {
		_, err := b.Lab.RunInput(context.WithoutCancel(b.T.Context()), bound, "kubectl", "delete", "-f", "-")
		require.NoError(b.T, err)
	})
}

// Of the default pool's maximum nobody hears whose namespace it does not serve. It does not run beside other tests, as
// they name no pool.
func TestTheApiserverLeavesNamespacesAloneThatTheDefaultPoolIsNotFor(t *testing.T) {
	b := trial.New(t)
	const label = "kubernetes.io/metadata.name"
	spec := func(key, operator string) string {
		return "{default: true, max: {cpus: 2}, namespaceSelector: {matchLabels: {" + label + ": " + b.Namespace +
			"}, matchExpressions: [{key: " + key + ", operator: " + operator + "}]}}"
	}
	pool := b.Pool("", spec(label, "Exists"))
	bindCeilings(b, pool)
	refuses := func() bool {
		_, err := b.Lab.RunInput(t.Context(), "{apiVersion: htc.cern.ch/v1alpha1, kind: HTCJob, metadata: {name: one}, "+
			"spec: {script: {image: centos, command: sh, source: exit 0}, resources: {cpus: 3}}}",
			"kubectl", "-n", b.Namespace, "apply", "--dry-run=server", "-f", "-")
		if err != nil {
			require.ErrorContains(t, err, "HTCPool "+pool+" allows a job at most 2 of cpus")
		}
		return err != nil
	}
	for _, c := range []struct {
		key, operator string
		is            bool
	}{
		{label, "In, values: [" + b.Namespace + "]", true},
		{label, "NotIn, values: [" + b.Namespace + "]", false},
		{label, "Exists", true},
		{label, "DoesNotExist", false},
		{"none", "DoesNotExist", true},
		{"none", "In, values: [a]", false},
		{"none", "NotIn, values: [a]", true},
		{"none", "Exists", false},
	} {
		b.EditPool(pool, spec(c.key, c.operator))
		b.Eventually(func() bool { return refuses() == c.is }, func() string { return fmt.Sprintf("%+v", c) })
	}
	b.EditPool(pool, "{default: true, max: {cpus: 2}, namespaceSelector: {matchLabels: {"+label+": other}}}")
	b.Eventually(func() bool { return !refuses() }, func() string { return "its labels do not fit" })
}

func TestTheApiserverRefusesWhatIsMoreThanAPoolsMaximum(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	pool := b.Pool("", "{max: {cpus: 2, memory: 1Gi, gpus: 0, runDeadlineSeconds: 60}}")
	bindCeilings(b, pool)

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
