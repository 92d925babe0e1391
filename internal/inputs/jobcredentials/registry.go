package jobcredentials

import (
	"encoding/json"
	"strings"
)

// dockerHub is what images of no other registry come from, and dockerHubNames its names in a .dockerconfigjson.
const dockerHub = "docker.io"

var dockerHubNames = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// login returns a .dockerconfigjson with nothing of another than the login for one registry; false: there is none.
func login(config []byte, registry string) ([]byte, bool) {
	var all struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if json.Unmarshal(config, &all) != nil {
		return nil, false
	}
	names := []string{registry}
	if registry == dockerHub {
		names = dockerHubNames
	}
	for _, name := range names {
		for key, entry := range all.Auths {
			host := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
			if host, _, _ = strings.Cut(host, "/"); !strings.EqualFold(host, name) {
				continue
			}
			one, err := json.Marshal(map[string]any{"auths": map[string]json.RawMessage{key: entry}})
			return one, err == nil
		}
	}
	return nil, false
}
