package artifact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfSeveralLoginsForARegistryTheOneForTheRepositoryCounts(t *testing.T) {
	allowed, err := ParseRegistries([]string{"a.example.org", "registry-1.docker.io"})
	require.NoError(t, err)
	p := NewPusher(allowed)
	config := []byte(`{"auths": {"a.example.org": {"username": "all", "password": "x"},
		"a.example.org/group": {"username": "group", "password": "x"},
		"https://a.example.org/group/sub/": {"username": "sub", "password": "x"},
		"b.example.org/other": {"username": "b", "password": "x"},
		"https://index.docker.io/v1/": {"username": "hub", "password": "x"},
		"c.example.org": {"auth": "no base64"}}}`)
	for range 20 {
		for reference, want := range map[string]string{
			"a.example.org/model:v1":           "all",
			"a.example.org/groups/model:v1":    "all",
			"a.example.org/group/model:v1":     "group",
			"a.example.org/group/sub/model:v1": "sub",
			"b.example.org/model:v1":           "b",
			"docker.io/me/model:v1":            "hub",
			"d.example.org/model:v1":           "",
		} {
			ref, err := parseReference(reference)
			require.NoError(t, err)
			login, err := loginFor(config, ref)
			require.NoError(t, err)
			require.Equal(t, want, login.Username, reference)
		}
	}
	ref, err := parseReference("a.example.org/model:v1")
	require.NoError(t, err)
	for _, bad := range []string{"", "{", `{"auths": []}`, `{"auths": {"a.example.org": {"auth": "no base64"}}}`} {
		_, err := p.repository(ref, [][]byte{[]byte(bad)})
		require.ErrorContains(t, err, "no .dockerconfigjson", bad)
	}
	for _, none := range []string{"null", "{}", `{"auths": {}}`} {
		_, err := p.repository(ref, [][]byte{[]byte(none), config})
		require.NoError(t, err, none)
	}
}
