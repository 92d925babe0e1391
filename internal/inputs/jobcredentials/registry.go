package jobcredentials

import (
	"encoding/json"

	"htc.cern.ch/htcd/internal/artifact"
)

// login returns a .dockerconfigjson with the logins for one registry alone, perhaps for single repositories in it, and
// reports whether there are any.
func login(config []byte, registry string) ([]byte, bool) {
	auths, err := artifact.LoginsFor(config, registry)
	if err != nil || len(auths) == 0 {
		return nil, false
	}
	own, err := json.Marshal(map[string]any{"auths": auths})
	return own, err == nil
}
