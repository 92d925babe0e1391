//go:build !releases

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// atTheLab puts the lab's servers in the place of those that the commands of a document name, with the files that are
// expected there. It returns the commands, and where their user's token, proxy and login are.
func atTheLab(t *testing.T, commands string) (changed string, environment []string) {
	t.Helper()
	if !strings.Contains(commands, ".example.org") {
		return commands, nil
	}
	b := trial.New(t)
	serve(b)
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	for _, s := range []struct{ account, dir, file string }{
		{"xrootd", b.Lab.Path("xrootd", "files", "atlas"), "field-v12.txt"},
		{"www-data", b.Lab.Path("store", "files", "atlas"), "calib.txt"},
		{"www-data", b.Lab.Path("store", "files", "proxies", "atlas"), "calib.txt"},
		{"www-data", b.Lab.Path("store", "files", "tokens", "atlas"), "model.txt"},
	} {
		_, err := b.Lab.RunAs(t.Context(), "root", "install", "-d", "-o", s.account, s.dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(s.dir)) })
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, s.file), []byte("the content of "+s.file+"\n"), 0o644))
	}
	b.Push(
		b.Registry()+"/group/model:v3",
		map[string][]byte{"model.pt": []byte("weights"), "labels.txt": []byte("electron\n")},
	)
	copyImage(b, "centos", "group/analysis:v3")

	registry := fmt.Sprintf("localhost:%d", world.Ports.Registry) // as such it wants a login for everything
	store := fmt.Sprintf("127.0.0.1:%d", world.Ports.Store)
	changed = strings.NewReplacer(
		"registry.example.org", registry, "eos.example.org", fmt.Sprintf("127.0.0.1:%d", world.Ports.XRootD),
		"opendata.example.org", store, "dav.example.org", store+"/proxies", "store.example.org", store+"/tokens",
	).Replace(commands)

	proxy, _ := shown(b, time.Now().Add(12*time.Hour))
	user := t.TempDir()
	for file, text := range map[string]string{"token": parts.StoreToken, "proxy": proxy, "config.json": dockerConfig(registry, parts.RegistryPassword)} {
		require.NoError(t, os.WriteFile(filepath.Join(user, file), []byte(text), 0o600))
	}
	return changed, []string{
		"BEARER_TOKEN_FILE=" + filepath.Join(user, "token"),
		"X509_USER_PROXY=" + filepath.Join(user, "proxy"),
		"DOCKER_CONFIG=" + user,
	}
}

// copyImage gives an image of the lab's registry a further name.
func copyImage(b *trial.Bench, image, as string) {
	b.T.Helper()
	reference := func(image string) name.Reference {
		ref, err := name.ParseReference(b.Registry()+"/"+image, name.Insecure)
		require.NoError(b.T, err)
		return ref
	}
	from, err := remote.Image(reference(image), remote.WithContext(b.T.Context()))
	require.NoError(b.T, err)
	require.NoError(b.T, remote.Write(reference(as), from, remote.WithContext(b.T.Context())))
}
