package parts

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNginxDoesWhatAnIngressSays(t *testing.T) {
	services := decode[serviceObject](t, `{"metadata": {"namespace": "htcd", "name": "htcd"},
		"spec": {"clusterIP": "10.96.0.7", "ports": [{"name": "cloudevents", "port": 80}]}}`)
	ingress := func(kind, port string) []ingressObject {
		return decode[ingressObject](
			t,
			`{"metadata": {"namespace": "htcd", "name": "htcd"}, "spec": {"rules": [{"host": "h.example.org",
			"http": {"paths": [{"path": "/x", "pathType": "`+kind+`", "backend": {"service": {"name": "htcd", "port": `+port+`}}}]}}]}}`,
		)
	}
	exact, err := nginxConfig("10.88.0.1", ingress("Exact", `{"name": "cloudevents"}`), services)
	require.NoError(t, err)
	require.Contains(t, exact, "server_name h.example.org;\n    location = /x { proxy_pass http://10.96.0.7:80;")
	prefix, err := nginxConfig("10.88.0.1", ingress("Prefix", `{"number": 80}`), services)
	require.NoError(t, err)
	require.Contains(t, prefix, "location /x { proxy_pass http://10.96.0.7:80;")

	_, err = nginxConfig("10.88.0.1", ingress("Exact", `{"name": "other"}`), services)
	require.ErrorContains(t, err, "ingress htcd/htcd: service htcd has no port")
	_, err = nginxConfig("10.88.0.1", ingress("Exact", `{}`), nil)
	require.ErrorContains(t, err, "no service htcd")
}

func decode[T any](t *testing.T, text string) []T {
	t.Helper()
	var one T
	require.NoError(t, json.Unmarshal([]byte(text), &one))
	return []T{one}
}
