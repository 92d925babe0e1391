package jobcredentials

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
)

func TestAJobGetsTheLoginForItsRegistryAlone(t *testing.T) {
	const config = `{"auths": {"a.example.org": {"auth": "YTph"}, "https://b.example.org/v1/": {"username": "b", "password": "b"},
		"https://index.docker.io/v1/": {"auth": "ZDpk"}}, "credsStore": "none"}`
	for registry, wanted := range map[string]string{
		"a.example.org": `{"auths":{"a.example.org":{"auth":"YTph"}}}`,
		"A.example.org": `{"auths":{"a.example.org":{"auth":"YTph"}}}`,
		"b.example.org": `{"auths":{"https://b.example.org/v1/":{"username":"b","password":"b"}}}`,
		"docker.io":     `{"auths":{"https://index.docker.io/v1/":{"auth":"ZDpk"}}}`,
		"example.org":   "",
		"":              "",
	} {
		one, found := login([]byte(config), registry)
		require.Equal(t, wanted != "", found, registry)
		require.Equal(t, wanted, string(one))
	}
	const two = `{"auths":{"a.example.org":{"auth":"YTph"},"a.example.org/group":{"auth":"Zzpn"}}}`
	for range 20 {
		both, found := login([]byte(two), "a.example.org")
		require.True(t, found)
		require.Equal(t, two, string(both), "the node takes the one for the image")
	}
	for _, bad := range []string{"", "{", `{"auths": []}`, "null"} {
		_, found := login([]byte(bad), "a.example.org")
		require.False(t, found, bad)
	}

	w := newWorld()
	w.secrets["regcred/config"] = config
	c := Credential{Name: "reg", Secret: "regcred", Key: "config", Kind: Registry, Registry: "a.example.org"}
	content, err := c.Read(t.Context(), w, "physics", time.Now())
	require.NoError(t, err)
	require.JSONEq(t, `{"auths":{"a.example.org":{"auth":"YTph"}}}`, string(content))
	c.Registry = "c.example.org"
	_, err = c.Read(t.Context(), w, "physics", time.Now())
	var unusable *jobsecrets.Unusable
	require.ErrorAs(t, err, &unusable)
	require.Contains(t, err.Error(), "no login for the registry c.example.org")
	require.NotContains(t, err.Error(), "YTph")
}
