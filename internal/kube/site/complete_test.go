package site

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/pool"
)

func TestThePoolsImageAndCredentialsAreForThoseThatBringNone(t *testing.T) {
	credential := func(name string, as v1alpha1.CredentialKind) v1alpha1.Credential {
		return v1alpha1.Credential{Name: name, As: as}
	}
	p := pool.Pool{
		Name: "grid",
		Spec: v1alpha1.HTCPoolSpec{Defaults: &v1alpha1.PoolDefaults{Image: "centos", Credentials: []v1alpha1.Credential{
			credential(
				"proxy",
				v1alpha1.X509Proxy,
			),
			credential("token", v1alpha1.BearerToken),
			credential("eos", v1alpha1.PlainFile),
		}}},
	}
	for name, c := range map[string]struct {
		own         []v1alpha1.Credential
		environment map[string]v1alpha1.EnvironmentValue
		want        string
	}{
		"one that says nothing":           {nil, nil, "proxy token eos"},
		"one with a proxy":                {[]v1alpha1.Credential{credential("mine", v1alpha1.X509Proxy)}, nil, "mine token eos"},
		"one with a file of another name": {[]v1alpha1.Credential{credential("mine", v1alpha1.PlainFile)}, nil, "mine proxy token eos"},
		"one with another file of a name": {[]v1alpha1.Credential{credential("token", v1alpha1.PlainFile)}, nil, "token proxy eos"},
		"one that sets the variable":      {nil, map[string]v1alpha1.EnvironmentValue{"X509_USER_PROXY": "/eos/x"}, "token eos"},
	} {
		j := &v1alpha1.HTCJob{}
		j.Spec.Credentials, j.Spec.Environment = c.own, c.environment
		hash := j.SpecHash()
		whole := complete(j, p)
		var names []string
		for _, one := range whole.Spec.Credentials {
			names = append(names, one.Name)
		}
		require.Equal(t, c.want, strings.Join(names, " "), name)
		require.Equal(t, "centos", whole.Spec.Script.Image, name)
		require.Equal(t, hash, j.SpecHash(), "an HTCJob with "+name+" was changed")
		require.Len(t, j.Spec.Credentials, len(c.own), name)
	}
	j := &v1alpha1.HTCJob{}
	j.Spec.Script.Image = "python"
	require.Equal(t, "python", complete(j, p).Spec.Script.Image)
	require.Same(t, j, complete(j, pool.Pool{}))
}
