package trial

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab/parts"
)

// Push makes an artifact of files in the lab's registry and returns its digest.
func (b *Bench) Push(reference string, files map[string][]byte) string {
	b.T.Helper()
	ref, err := name.ParseReference(reference, name.Insecure)
	require.NoError(b.T, err)
	image := mutate.ConfigMediaType(
		mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		"application/vnd.oci.empty.v1+json",
	)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: static.NewLayer(
				files[file],
				"application/octet-stream",
			), Annotations: map[string]string{"org.opencontainers.image.title": file},
		})
		require.NoError(b.T, err)
	}
	require.NoError(b.T, remote.Write(ref, image, remote.WithContext(b.T.Context())))
	digest, err := image.Digest()
	require.NoError(b.T, err)
	return digest.String()
}

// Registry returns the host of the lab's registry.
func (b *Bench) Registry() string {
	b.T.Helper()
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	return fmt.Sprintf("127.0.0.1:%d", world.Ports.Registry)
}
