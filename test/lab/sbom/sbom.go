// Package sbom lists the contents of an image of htcd as CycloneDX: the Go modules that its program says it was built
// from, and the Debian packages of its other files.
package sbom

import (
	"archive/tar"
	"bufio"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// List is the contents of an image.
type List struct {
	Name, Version string
	Modules       []Part
	Packages      []Part
	// Size is the sum of the sizes of all files.
	Size int64
}

// Part is one module or package.
type Part struct{ Name, Version, URL string }

// Paths in the image.
const (
	Program    = "usr/bin/htcd"
	PackageDir = "var/lib/dpkg/status.d"
)

// OfArchive reads an image in the format of docker save.
func OfArchive(file string) (List, error) {
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return List{}, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return List{}, err
	}
	labels := config.Config.Labels
	list := List{Name: labels["org.opencontainers.image.title"], Version: labels["org.opencontainers.image.version"]}
	tree := mutate.Extract(image)
	defer tree.Close()
	return list, list.read(tar.NewReader(tree))
}

func (l *List) read(files *tar.Reader) error {
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		l.Size += header.Size
		name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		switch {
		case name == Program:
			err = l.addModules(files)
		case path.Dir(name) == PackageDir && header.Typeflag == tar.TypeReg:
			err = l.addPackage(files)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if l.Modules == nil || l.Packages == nil {
		return fmt.Errorf("no %s with modules, or nothing in %s", Program, PackageDir)
	}
	return nil
}

func (l *List) addModules(program io.Reader) error {
	text, err := io.ReadAll(program)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	l.Modules = append(l.Modules, Part{"stdlib", version, "pkg:golang/stdlib@" + version})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		l.Modules = append(l.Modules, Part{m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	return nil
}

// addPackage reads a paragraph as dpkg-query -s prints it.
func (l *List) addPackage(status io.Reader) error {
	field := map[string]string{}
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ": "); ok && !strings.HasPrefix(name, " ") {
			field[name] = value
		}
	}
	name, version := field["Package"], field["Version"]
	if name == "" || version == "" {
		return errors.New("neither package nor version")
	}
	l.Packages = append(l.Packages, Part{name, version,
		"pkg:deb/debian/" + url.PathEscape(name) + "@" + url.PathEscape(version) + "?arch=" + field["Architecture"]})
	return lines.Err()
}

// Parts returns the number of parts.
func (l *List) Parts() int { return len(l.Modules) + len(l.Packages) }

// Write writes the list as CycloneDX JSON.
func (l *List) Write(to io.Writer) error {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeContainer, Name: l.Name, Version: l.Version,
	}}
	var components []cyclonedx.Component
	for _, p := range append(append([]Part{}, l.Modules...), l.Packages...) {
		components = append(components, cyclonedx.Component{
			Type:       cyclonedx.ComponentTypeLibrary,
			BOMRef:     p.Name + "@" + p.Version,
			Name:       p.Name,
			Version:    p.Version,
			PackageURL: p.URL,
		})
	}
	bom.Components = &components
	return cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}
