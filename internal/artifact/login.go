package artifact

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// dockerHub are the names of one registry.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// loginFor returns the login for a repository in a .dockerconfigjson, which may have several for one registry, by parts
// of repositories' names: the one for most of the name counts. The login is empty if there is none.
func loginFor(config []byte, ref registry.Reference) (auth.Credential, error) {
	var all struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(config, &all); err != nil {
		return auth.EmptyCredential, err
	}
	var best string
	most := -1
	for _, key := range slices.Sorted(maps.Keys(all.Auths)) {
		host, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://"), "/")
		if !strings.EqualFold(host, ref.Registry) &&
			!(slices.Contains(dockerHub, host) && slices.Contains(dockerHub, ref.Registry)) {
			continue
		}
		fits := 0 // it is for something else there, but perhaps the only one
		switch path = strings.Trim(path, "/"); {
		case path == "", path == "v1", path == "v2":
			fits = 1
		case strings.HasPrefix(ref.Repository+"/", path+"/"):
			fits = 1 + len(path)
		}
		if fits > most {
			best, most = key, fits
		}
	}
	if most < 0 {
		return auth.EmptyCredential, nil
	}
	const only = "registry"
	one, err := json.Marshal(map[string]any{"auths": map[string]json.RawMessage{only: all.Auths[best]}})
	if err != nil {
		return auth.EmptyCredential, err
	}
	store, err := credentials.NewMemoryStoreFromDockerConfig(one)
	if err != nil {
		return auth.EmptyCredential, err
	}
	return store.Get(context.Background(), only)
}
