package plugin

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestADirectoryIsOneUploadAsLongAsItsFilesAreTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "maps")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "in", "empty"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in", "a b"), []byte("text"), 0o600))
	require.NoError(
		t,
		os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o700),
	) // #nosec G306 -- a program
	require.NoError(t, os.Symlink("run", filepath.Join(dir, "link")))
	first, err := packed(dir)
	require.NoError(t, err)
	then := time.Unix(1e9, 0)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "run"), then, then))
	second, err := fileToUpload(dir)
	require.NoError(t, err)
	require.Equal(t, first.upload, second.upload)
	require.NoError(t, os.Chmod(filepath.Join(dir, "run"), 0o600))
	third, err := packed(dir)
	require.NoError(t, err)
	require.NotEqual(t, first.upload, third.upload)

	from, done, err := first.open()
	require.NoError(t, err)
	defer func() { require.NoError(t, done()) }()
	plain, err := gzip.NewReader(io.NewSectionReader(from, 0, first.size))
	require.NoError(t, err)
	got := map[string]int64{}
	for entries := tar.NewReader(plain); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got[h.Name] = h.Mode
	}
	require.Equal(t, map[string]int64{
		"in/": 0o755, "in/empty/": 0o755, "in/a b": 0o644, "run": 0o755, "link": 0o755,
	}, got)
}

func TestASlashMeansWhatIsInADirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "maps"), 0o700))
	files, large, err := readInputs([]string{dir + "/maps", "charts=" + dir + "/maps/", dir + "/maps/"})
	require.NoError(t, err)
	require.Empty(t, files)
	var got []v1alpha1.Input
	for _, in := range uploaded(large) {
		in.Upload = ""
		got = append(got, in)
	}
	require.Equal(t, []v1alpha1.Input{
		{Name: "maps", Unpack: v1alpha1.UnpackDirectory},
		{Name: "charts", Unpack: v1alpha1.UnpackDirectory},
		{Name: "maps.tar.gz", Unpack: v1alpha1.UnpackHere},
	}, got)
}
