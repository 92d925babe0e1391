package sbom

import (
	"archive/tar"
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

// tree returns an image's files.
func tree(t *testing.T, files map[string][]byte) *tar.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		require.NoError(
			t,
			w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}),
		)
		_, err := w.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return tar.NewReader(&b)
}

const status = "Package: libx\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2.0+dfsg-1\nDescription: x\n Package: no\n"

func TestModulesAndPackagesAreListed(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	list := List{Name: "htcd", Version: "v1"}
	require.NoError(
		t,
		list.read(tree(t, map[string][]byte{Program: program, PackageDir + "/libx": []byte(status), "etc/x": nil})),
	)
	require.Equal(t, []Part{{"libx", "1:2.0+dfsg-1", "pkg:deb/debian/libx@1:2.0+dfsg-1?arch=amd64"}}, list.Packages)
	require.True(t, slices.ContainsFunc(list.Modules, func(p Part) bool { return p.Name == "stdlib" }))
	require.EqualValues(t, len(program)+len(status), list.Size)

	var out bytes.Buffer
	require.NoError(t, list.Write(&out))
	var bom cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(&out, cyclonedx.BOMFileFormatJSON).Decode(&bom))
	require.Len(t, *bom.Components, list.Parts())
}

func TestAnImageThatDoesNotSayWhatIsInItIsAnError(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"nothing in it":              {},
		"packages alone":             {PackageDir + "/libx": []byte(status)},
		"a program that is not Go's": {Program: []byte("#!/bin/sh\n")},
		"a package without version":  {PackageDir + "/libx": []byte("Package: libx\n")},
	} {
		t.Run(name, func(t *testing.T) {
			var list List
			require.Error(t, list.read(tree(t, files)))
		})
	}
}
