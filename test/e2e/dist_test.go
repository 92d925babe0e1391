//go:build !releases

package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"debug/elf"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
)

// What takes long, the programs and the image, is compared by `make dist-check`; tools/release tests what is signed.
func TestARelease(t *testing.T) {
	t.Parallel()
	running, err := lab.Find()
	require.NoError(t, err)
	archives := anImage(t, "amd64", elf.EM_X86_64) + " " + anImage(t, "arm64", elf.EM_AARCH64)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	key := filepath.Join(t.TempDir(), "cosign.key")
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	var dirs [2]string
	for i := range dirs {
		dirs[i] = t.TempDir()
		c := exec.CommandContext(t.Context(), "../../tools/dist.sh", "v0.9.0", dirs[i])
		c.Env = append(
			os.Environ(),
			"KUBECTL="+running.Bin("kubectl"),
			"HTCD_LAB="+running.Dir,
			"PLATFORMS=",
			"IMAGE=registry.example.org/htcd",
			"ARCHIVES="+archives,
			"KEY="+key,
		)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	out, err := exec.CommandContext(t.Context(), "diff", "-r", dirs[0], dirs[1]).CombinedOutput()
	require.NoError(t, err, "two runs differ: %s", out)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = dirs[0]
	out, err = check.CombinedOutput()
	require.NoError(t, err, "%s", out)

	overlays, err := filepath.Glob("../../deploy/overlays/*")
	require.NoError(t, err)
	for _, dir := range overlays {
		if name := filepath.Base(dir); name != "site" { // a template
			require.FileExists(t, filepath.Join(dirs[0], "install-"+name+".yaml"))
		}
	}
	require.FileExists(t, filepath.Join(dirs[0], "ceilings.yaml"))
	text, err := os.ReadFile(filepath.Join(dirs[0], "install.yaml"))
	require.NoError(t, err)
	index := indexOf(t, filepath.Join(dirs[0], "htcd-image.tar"))
	require.Contains(t, string(text), "image: registry.example.org/htcd@"+index+"\n")
	require.NotContains(t, string(text), "@sha256:0000")
	values := exec.CommandContext(
		t.Context(),
		"tar",
		"-xzOf",
		filepath.Join(dirs[0], "htcd-0.9.0.tgz"),
		"htcd/values.yaml",
	)
	chart, err := values.Output()
	require.NoError(t, err)
	require.Contains(
		t,
		string(chart),
		"\n  repository: \"registry.example.org/htcd\"\n  tag: \"\"\n  digest: \""+index+"\"\n",
	)
	sums, err := os.ReadFile(filepath.Join(dirs[0], "SHA256SUMS"))
	require.NoError(t, err)
	text64, err := os.ReadFile(filepath.Join(dirs[0], "SHA256SUMS.sig"))
	require.NoError(t, err)
	signature, err := base64.StdEncoding.DecodeString(string(text64))
	require.NoError(t, err)
	sum := sha256.Sum256(sums)
	require.True(t, ecdsa.VerifyASN1(&private.PublicKey, sum[:], signature))

	crds, err := os.ReadFile(filepath.Join(dirs[0], "crds.yaml"))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(crds), "\nkind: CustomResourceDefinition\n"))
	require.Contains(t, string(text), strings.TrimSpace(string(crds)))
	said, err := running.Run(
		t.Context(),
		"kubectl",
		"apply",
		"--server-side",
		"--force-conflicts",
		"--dry-run=server",
		"-f",
		filepath.Join(dirs[0], "crds.yaml"),
	)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(said, "(server dry run)"), said)

	again := exec.CommandContext(t.Context(), "../../tools/dist.sh", "v0.9.0", dirs[0])
	out, err = again.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "is not empty")
}

// anImage writes an image with one program, of which only the head is there.
func anImage(t *testing.T, architecture string, machine elf.Machine) string {
	head := elf.Header64{
		Type:      uint16(elf.ET_EXEC),
		Machine:   uint16(machine),
		Version:   1,
		Ehsize:    64,
		Phentsize: 56,
		Shentsize: 64,
	}
	copy(head.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	var program bytes.Buffer
	require.NoError(t, binary.Write(&program, binary.LittleEndian, head))
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "usr/bin/htcd", Mode: 0o755, Size: int64(program.Len())}))
	_, err := program.WriteTo(w)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
	)
	require.NoError(t, err)
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: architecture})
	require.NoError(t, err)
	image, err = mutate.AppendLayers(image, layer)
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, tarball.WriteToFile(archive, name.MustParseReference("htcd:v0.9.0"), image))
	return archive
}

// indexOf returns the digest of the index that an OCI image layout holds for v0.9.0.
func indexOf(t *testing.T, archive string) string {
	dir := t.TempDir()
	require.NoError(t, exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", dir).Run())
	all, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	manifest, err := all.IndexManifest()
	require.NoError(t, err)
	found := slices.IndexFunc(
		manifest.Manifests,
		func(m v1.Descriptor) bool { return m.Annotations["org.opencontainers.image.ref.name"] == "v0.9.0" },
	)
	require.GreaterOrEqual(t, found, 0)
	index, err := all.ImageIndex(manifest.Manifests[found].Digest)
	require.NoError(t, err)
	images, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, images.Manifests, 2)
	require.Equal(t, "arm64", images.Manifests[1].Platform.Architecture)
	return manifest.Manifests[found].Digest.String()
}
