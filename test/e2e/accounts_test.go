//go:build !releases

package e2e

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

func TestASecretThatCannotBeUsedIsSaidWhenItIsApplied(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	for _, c := range []struct {
		name, warning string
		data          []string
	}{
		{"kinit-secret", "it must have username, and password or keytab; or token alone", nil},
		{"kinit-secret", "it must have username, and password or keytab; or token alone", []string{"username=robot"}},
		{"kinit-secret", "it must have username, and password or keytab; or token alone", []string{"username=robot", "password="}},
		{"kinit-secret", "it is unclear which is meant", []string{"username=robot", "token=x"}},
		{"condor-token", "its token is empty", []string{"token="}},
		{"condor-token", "", []string{"token=x"}},
		{"kinit-secret", "", []string{"username=robot", "password=x"}},
		{"kinit-secret", "", []string{"username=robot", "keytab=x"}},
		{"another", "", []string{"username=robot"}},
	} {
		args := []string{"-n", b.Namespace, "create", "secret", "generic", c.name, "--dry-run=server"}
		for _, pair := range c.data {
			args = append(args, "--from-literal="+pair)
		}
		out, err := exec.CommandContext(t.Context(), b.Lab.Bin("kubectl"), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		if c.warning == "" {
			require.NotContains(t, string(out), "Warning", c.data)
			continue
		}
		require.Contains(
			t,
			string(out),
			"Warning: Validation failed for ValidatingAdmissionPolicy 'htcd-accounts'",
			c.data,
		)
		require.Contains(t, string(out), c.warning, c.data)
	}
}
