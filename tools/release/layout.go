package main

import (
	"fmt"
	"maps"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// program is the file that changes with every release; what is below it changes with Debian.
const program = "usr/bin/htcd"

// imageIndex makes one index of the images in archives. Nothing in it depends on when or with which engine they were
// built.
func imageIndex(archives []string, at time.Time) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]bool{}
	for _, archive := range archives {
		built, err := tarball.ImageFromPath(archive, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		image, err := normal(built, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		if seen[config.Architecture] {
			return nil, fmt.Errorf("%s: there is another image for %s", archive, config.Architecture)
		}
		seen[config.Architecture] = true
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture},
		}})
	}
	return index, nil
}

// normal makes an image of the same files and settings that depends on nothing else.
func normal(built v1.Image, at time.Time) (v1.Image, error) {
	was, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	labels := maps.Clone(was.Config.Labels)
	maps.DeleteFunc(
		labels,
		func(name, _ string) bool { return !strings.HasPrefix(name, "org.opencontainers.image.") },
	) // the engine's
	files, err := readTree(built)
	if err != nil {
		return nil, err
	}
	if err := files.checkPrograms(was.Architecture); err != nil {
		return nil, err
	}
	config := &v1.ConfigFile{
		OS:           was.OS,
		Architecture: was.Architecture,
		Created:      v1.Time{Time: at},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:         was.Config.User,
			ExposedPorts: was.Config.ExposedPorts,
			Env:          was.Config.Env,
			Entrypoint:   was.Config.Entrypoint,
			Cmd:          was.Config.Cmd,
			WorkingDir:   was.Config.WorkingDir,
			Labels:       labels,
		},
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		of   string
		keep func(name string) bool
	}{
		{"HTCondor's and Kerberos' programs of Debian, and what they need", func(name string) bool { return name != program }},
		{"htcd", func(name string) bool { return name == program }},
	} {
		layer, err := files.layer(at, part.keep)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: at}, CreatedBy: part.of}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// Annotations of what a layout holds: the tag by which programs find it, and cosign's own of index and signatures.
const (
	nameAnnotation = "org.opencontainers.image.ref.name"
	kindAnnotation = "kind"
	kindIndex      = "dev.cosignproject.cosign/imageIndex"
	kindSignatures = "dev.cosignproject.cosign/sigs"
)

// writeLayout writes an OCI image layout of the index and, with a key, of signatures of it and of each image in it.
func writeLayout(dir, version string, index v1.ImageIndex, signer *key, image string) error {
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := to.AppendIndex(
		index,
		layout.WithAnnotations(map[string]string{nameAnnotation: version, kindAnnotation: kindIndex}),
	); err != nil {
		return err
	}
	if signer == nil {
		return nil
	}
	whole, err := index.Digest()
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	signed := []v1.Hash{whole}
	for _, m := range manifest.Manifests {
		signed = append(signed, m.Digest)
	}
	for i, digest := range signed {
		signature, err := signatureOf(digest, image, signer)
		if err != nil {
			return err
		}
		annotations := map[string]string{nameAnnotation: signatureTag(digest)}
		if i == 0 {
			annotations[kindAnnotation] = kindSignatures
		}
		if err := to.AppendImage(signature, layout.WithAnnotations(annotations)); err != nil {
			return err
		}
	}
	return nil
}
