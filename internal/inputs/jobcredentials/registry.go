package jobcredentials

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// dockerHub is what images of no other registry come from, and dockerHubNames its names in a .dockerconfigjson.
const dockerHub = "docker.io"

var dockerHubNames = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// login returns a .dockerconfigjson with the logins for one registry alone, perhaps for single repositories in it, and
// reports whether there are any.
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
	maps.DeleteFunc(all.Auths, func(key string, _ json.RawMessage) bool {
		host := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		return !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(host, name) })
	})
	if len(all.Auths) == 0 {
		return nil, false
	}
	own, err := json.Marshal(all)
	return own, err == nil
}
