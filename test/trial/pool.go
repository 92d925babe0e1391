package trial

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Pool creates an HTCPool, which is deleted at the end of the test; spec is YAML. Its name is that of the test's
// namespace, and the suffix if there is one.
func (b *Bench) Pool(suffix, spec string) (name string) {
	b.T.Helper()
	if name = b.Namespace; suffix != "" {
		name += "-" + suffix
	}
	pool := fmt.Sprintf(
		`{"apiVersion": "htc.cern.ch/v1alpha1", "kind": "HTCPool", "metadata": {"name": %q}, "spec": %s}`,
		name,
		b.json(spec),
	)
	_, err := b.Lab.RunInput(b.T.Context(), pool, "kubectl", "create", "-f", "-")
	require.NoError(b.T, err)
	b.T.Cleanup(func() {
		_, err := b.Lab.Run(
			context.WithoutCancel(b.T.Context()),
			"kubectl",
			"delete",
			"htcpool",
			name,
			"--ignore-not-found",
		)
		require.NoError(b.T, err)
	})
	return name
}

// EditPool merges YAML into the spec of an HTCPool.
func (b *Bench) EditPool(name, spec string) {
	b.T.Helper()
	b.Kubectl("patch", "htcpool", name, "--type=merge", "-p", `{"spec": `+b.json(spec)+`}`)
}

func (b *Bench) json(text string) string {
	b.T.Helper()
	j, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(b.T, err)
	return string(j)
}
