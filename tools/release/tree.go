package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// tree is the files of an image by their paths, which begin without a slash.
type tree map[string]file

type file struct {
	kind byte // as in archive/tar
	mode int64
	link string
	text []byte
}

// readTree reads what a container of the image would see.
func readTree(image v1.Image) (tree, error) {
	all := mutate.Extract(image)
	defer all.Close()
	t := tree{}
	for files := tar.NewReader(all); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if name != "" {
			t[name] = file{h.Typeflag, h.Mode & 0o7777, h.Linkname, text}
		}
	}
}

// layer packs the files of which keep reports true: by name, all of root, and of one time.
func (t tree) layer(at time.Time, keep func(name string) bool) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if !keep(name) {
			continue
		}
		f := t[name]
		h := tar.Header{
			Name:     name,
			Typeflag: f.kind,
			Mode:     f.mode,
			Linkname: f.link,
			Size:     int64(len(f.text)),
			ModTime:  at,
			Format:   tar.FormatPAX,
		}
		if f.kind == tar.TypeDir {
			h.Name += "/"
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer),
	)
}
