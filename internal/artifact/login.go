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

// dockerHub are the names of one registry; images are of the first.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// LoginsFor returns the logins for one registry in a .dockerconfigjson, perhaps for single repositories in it, by their
// keys there.
func LoginsFor(config []byte, registry string) (map[string]json.RawMessage, error) {
	var all struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(config, &all); err != nil {
		return nil, err
	}
	names := []string{registry}
	if registry == dockerHub[0] {
		names = dockerHub
	}
	maps.DeleteFunc(all.Auths, func(key string, _ json.RawMessage) bool {
		host, _ := splitKey(key)
		return !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(host, name) })
	})
	return all.Auths, nil
}

// splitKey returns the registry that a key of a .dockerconfigjson names, and the part of repositories' names, if any.
func splitKey(key string) (host, path string) {
	host, path, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://"), "/")
	return host, strings.Trim(path, "/")
}

// loginFor returns the login for a repository in a .dockerconfigjson, which may have several for one registry, by parts
// of repositories' names: the one for most of the name counts. The login is empty if there is none.
func loginFor(config []byte, ref registry.Reference) (auth.Credential, error) {
	at := ref.Registry
	if slices.Contains(dockerHub, at) {
		at = dockerHub[0]
	}
	auths, err := LoginsFor(config, at)
	if err != nil {
		return auth.EmptyCredential, err
	}
	var best string
	most := -1
	for _, key := range slices.Sorted(maps.Keys(auths)) {
		fits := 0 // it is for something else there, but perhaps the only one
		switch _, path := splitKey(key); {
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
	one, err := json.Marshal(map[string]any{"auths": map[string]json.RawMessage{only: auths[best]}})
	if err != nil {
		return auth.EmptyCredential, err
	}
	store, err := credentials.NewMemoryStoreFromDockerConfig(one)
	if err != nil {
		return auth.EmptyCredential, err
	}
	return store.Get(context.Background(), only)
}
