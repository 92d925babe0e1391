package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push copies what a layout holds to a registry: the index under the given name, each signature under cosign's tag for
// it.
func push(archive, to string) error {
	ref, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return err
	}
	dir, clean, err := unpacked(archive)
	if err != nil {
		return err
	}
	defer clean()
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return err
	}
	login := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	for _, m := range manifest.Manifests {
		if m.Annotations[kindAnnotation] == kindIndex {
			index, err := all.ImageIndex(m.Digest)
			if err != nil {
				return err
			}
			if err := remote.WriteIndex(ref, index, login); err != nil {
				return err
			}
			fmt.Println(ref.Context().Digest(m.Digest.String()))
			continue
		}
		signature, err := all.Image(m.Digest)
		if err != nil {
			return err
		}
		if err := remote.Write(ref.Context().Tag(m.Annotations[nameAnnotation]), signature, login); err != nil {
			return err
		}
	}
	return nil
}

// unpacked returns the directory of a layout, which may be in a tar, and what removes it.
func unpacked(archive string) (dir string, clean func(), err error) {
	if info, err := os.Stat(archive); err != nil || info.IsDir() {
		return archive, func() {}, err
	}
	packed, err := os.Open(archive)
	if err != nil {
		return "", nil, err
	}
	defer packed.Close()
	if dir, err = os.MkdirTemp("", "release"); err != nil {
		return "", nil, err
	}
	clean = func() { _ = os.RemoveAll(dir) }
	if err := unpack(packed, dir); err != nil {
		clean()
		return "", nil, fmt.Errorf("%s: %w", archive, err)
	}
	return dir, clean, nil
}

func unpack(packed io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for files := tar.NewReader(packed); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(path.Dir(h.Name), 0o755); err != nil {
			return err
		}
		f, err := root.Create(h.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, files)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
