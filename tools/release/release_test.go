package main

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
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/stretchr/testify/require"
)

// headOf returns the head of a program that needs nothing.
func headOf(machine elf.Machine) string {
	var b bytes.Buffer
	h := elf.Header64{
		Type:      uint16(elf.ET_EXEC),
		Machine:   uint16(machine),
		Version:   1,
		Ehsize:    64,
		Phentsize: 56,
		Shentsize: 64,
	}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	_ = binary.Write(&b, binary.LittleEndian, h)
	return b.String()
}

// built writes an image as an engine would: of this moment, and in the order in which the names are given.
func built(t *testing.T, architecture string, machine elf.Machine, names ...string) string {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, n := range names {
		text := headOf(machine)
		require.NoError(
			t,
			w.WriteHeader(
				&tar.Header{
					Name:     n,
					Typeflag: tar.TypeReg,
					Mode:     0o755,
					Size:     int64(len(text)),
					ModTime:  time.Now(),
					Uid:      os.Getuid(),
					Uname:    "builder",
				},
			),
		)
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
	)
	require.NoError(t, err)
	image, err := mutate.ConfigFile(
		empty.Image,
		&v1.ConfigFile{OS: "linux", Architecture: architecture, Created: v1.Time{Time: time.Now()},
			Config: v1.Config{User: "10001:10001", Entrypoint: []string{"/usr/bin/htcd"},
				Labels: map[string]string{
					"org.opencontainers.image.version": "v0.9.0",
					"io.buildah.version":               strings.Join(names, " "),
				}}},
	)
	require.NoError(t, err)
	image, err = mutate.AppendLayers(image, layer)
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, tarball.WriteToFile(archive, name.MustParseReference("htcd:v0.9.0"), image))
	return archive
}

// aKey writes a private key: with a password as `cosign generate-key-pair` does.
func aKey(t *testing.T, password string) (file string, public *ecdsa.PublicKey) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	block := pem.Block{Type: "PRIVATE KEY", Bytes: der}
	if password != "" {
		box, err := encrypted.Encrypt(der, []byte(password))
		require.NoError(t, err)
		block = pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: box}
	}
	file = filepath.Join(t.TempDir(), "cosign.key")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&block), 0o600))
	return file, &private.PublicKey
}

// verified reports whether the image holds a signature of that digest by the key's owner.
func verified(t *testing.T, holder v1.Image, digest v1.Hash, public *ecdsa.PublicKey) bool {
	manifest, err := holder.Manifest()
	require.NoError(t, err)
	require.Len(t, manifest.Layers, 1)
	require.EqualValues(t, payloadType, manifest.Layers[0].MediaType)
	layer, err := holder.LayerByDigest(manifest.Layers[0].Digest)
	require.NoError(t, err)
	opened, err := layer.Compressed()
	require.NoError(t, err)
	text, err := io.ReadAll(opened)
	require.NoError(t, err)
	require.JSONEq(
		t,
		`{"critical": {"identity": {"docker-reference": "registry.example.org/htcd"}, "image": {"docker-manifest-digest": "`+
			digest.String()+`"}, "type": "cosign container image signature"}, "optional": null}`,
		string(text),
	)
	signature, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations[signatureAnnotation])
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	return ecdsa.VerifyASN1(public, sum[:], signature)
}

func TestALayoutHoldsBothPlatformsAndTheirSignaturesAndIsTheSameEachTime(t *testing.T) {
	keyFile, public := aKey(t, "")
	_, other := aKey(t, "")
	var dirs [2]string
	for i, names := range [][]string{{"usr/bin/htcd", "usr/bin/condor_q"}, {"usr/bin/condor_q", "usr/bin/htcd"}} {
		dirs[i] = filepath.Join(t.TempDir(), "layout")
		require.NoError(
			t,
			run(
				[]string{
					"layout",
					"-version",
					"v0.9.0",
					"-created",
					"1700000000",
					"-key",
					keyFile,
					"-image",
					"registry.example.org/htcd",
					dirs[i],
					built(t, "amd64", elf.EM_X86_64, names...),
					built(t, "arm64", elf.EM_AARCH64, names...),
				},
			),
		)
	}
	first, err := os.ReadFile(filepath.Join(dirs[0], "index.json"))
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(dirs[1], "index.json"))
	require.NoError(t, err)
	require.Equal(t, string(first), string(second), "everything in a layout follows from the digests in its index")

	all, err := layout.ImageIndexFromPath(dirs[0])
	require.NoError(t, err)
	manifest, err := all.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 4)
	require.Equal(
		t,
		map[string]string{"org.opencontainers.image.ref.name": "v0.9.0", "kind": "dev.cosignproject.cosign/imageIndex"},
		manifest.Manifests[0].Annotations,
	)
	index, err := all.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	images, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, images.Manifests, 2)
	signed := []v1.Hash{manifest.Manifests[0].Digest}
	for i, architecture := range []string{"amd64", "arm64"} {
		require.Equal(t, &v1.Platform{OS: "linux", Architecture: architecture}, images.Manifests[i].Platform)
		image, err := index.Image(images.Manifests[i].Digest)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, "10001:10001", config.Config.User)
		require.Equal(t, architecture, config.Architecture)
		require.Equal(t, map[string]string{"org.opencontainers.image.version": "v0.9.0"}, config.Config.Labels)
		require.Len(t, config.RootFS.DiffIDs, 2)
		signed = append(signed, images.Manifests[i].Digest)
	}
	for i, digest := range signed {
		holder, err := all.Image(manifest.Manifests[1+i].Digest)
		require.NoError(t, err)
		require.Equal(
			t,
			strings.ReplaceAll(digest.String(), ":", "-")+".sig",
			manifest.Manifests[1+i].Annotations[nameAnnotation],
		)
		require.True(t, verified(t, holder, digest, public))
		require.False(t, verified(t, holder, digest, other))
	}

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/site/htcd"
	archive := filepath.Join(t.TempDir(), "layout.tar")
	pack(t, dirs[0], archive)
	require.NoError(t, run([]string{"push", archive, repository + ":v0.9.0"}))
	there, err := remote.Get(tagged(t, repository, "v0.9.0"))
	require.NoError(t, err)
	require.Equal(t, signed[0], there.Digest)
	for _, digest := range signed {
		holder, err := remote.Image(tagged(t, repository, strings.ReplaceAll(digest.String(), ":", "-")+".sig"))
		require.NoError(t, err)
		require.True(t, verified(t, holder, digest, public))
	}
}

func tagged(t *testing.T, repository, tag string) name.Tag {
	ref, err := name.NewTag(repository + ":" + tag)
	require.NoError(t, err)
	return ref
}

func pack(t *testing.T, dir, archive string) {
	file, err := os.Create(archive)
	require.NoError(t, err)
	w := tar.NewWriter(file)
	require.NoError(t, w.AddFS(os.DirFS(dir)))
	require.NoError(t, w.Close())
	require.NoError(t, file.Close())
}

func TestAnImageWithProgramsOfAnotherArchitectureIsRefused(t *testing.T) {
	err := run([]string{"layout", "-version", "v0.9.0", t.TempDir(), built(t, "arm64", elf.EM_X86_64, "usr/bin/htcd")})
	require.ErrorContains(t, err, "usr/bin/htcd: is for EM_X86_64")
	err = run([]string{"layout", "-version", "v0.9.0", t.TempDir(), built(t, "riscv64", elf.EM_RISCV, "usr/bin/htcd")})
	require.ErrorContains(t, err, "only amd64 and arm64 are known")
	err = run([]string{"layout", "-version", "v0.9.0", t.TempDir(), built(t, "arm64", elf.EM_AARCH64)})
	require.ErrorContains(t, err, "no program in the image")
	twice := built(t, "arm64", elf.EM_AARCH64, "usr/bin/htcd")
	err = run([]string{"layout", "-version", "v0.9.0", t.TempDir(), twice, twice})
	require.ErrorContains(t, err, "another image for arm64")
}

func TestAProgramWithoutOneOfItsLibrariesIsRefused(t *testing.T) {
	// The only dynamic program that a machine is sure to have.
	text, err := os.ReadFile("/bin/sh")
	require.NoError(t, err)
	program, err := elf.NewFile(bytes.NewReader(text))
	require.NoError(t, err)
	if program.Machine != elf.EM_X86_64 {
		t.Fatal("this test is written for amd64")
	}
	files := tree{
		"usr/bin/sh":                         {text: text},
		"lib64":                              {link: "usr/lib64"},
		"usr/lib64/ld-linux-x86-64.so.2":     {},
		"usr/lib/x86_64-linux-gnu/libc.so.6": {},
	}
	require.NoError(t, files.checkPrograms("amd64"))
	delete(files, "usr/lib/x86_64-linux-gnu/libc.so.6")
	require.ErrorContains(t, files.checkPrograms("amd64"), "usr/bin/sh: there is no libc.so.6")
	delete(files, "lib64")
	require.ErrorContains(t, files.checkPrograms("amd64"), "there is no /lib64/ld-linux-x86-64.so.2")
}

func TestAFileIsSignedAsCosignSignsBlobs(t *testing.T) {
	keyFile, public := aKey(t, "secret")
	t.Setenv("COSIGN_PASSWORD", "secret")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte("sums\n"), 0o644))
	require.NoError(t, run([]string{"sign", "-key", keyFile, dir, "SHA256SUMS"}))
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS.sig"))
	require.NoError(t, err)
	signature, err := base64.StdEncoding.DecodeString(string(text))
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("sums\n"))
	require.True(t, ecdsa.VerifyASN1(public, sum[:], signature))
	written, err := os.ReadFile(filepath.Join(dir, "cosign.pub"))
	require.NoError(t, err)
	block, _ := pem.Decode(written)
	read, err := x509.ParsePKIXPublicKey(block.Bytes)
	require.NoError(t, err)
	require.True(t, public.Equal(read))
}

func TestAKeyThatCannotSignIsNamed(t *testing.T) {
	keyFile, public := aKey(t, "secret")
	_, err := readKey(keyFile, []byte("wrong"))
	require.ErrorContains(t, err, "COSIGN_PASSWORD does not open it")
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	for text, said := range map[string]string{
		"nothing": "is no PEM file",
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})):     "holds a PUBLIC KEY, not a private key",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})):    "asn1",
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})): "x509",
	} {
		file := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := readKey(file, nil)
		require.ErrorContains(t, err, said)
		require.ErrorContains(t, err, file)
	}
	_, err = readKey("/nonexistent", nil)
	require.Error(t, err)
}
