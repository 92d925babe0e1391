package artifact

import (
	"encoding/json"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	maxManifest = 4 << 20 // bytes
	maxTitle    = 512
	maxSize     = 256 << 30 // bytes together: sums of many times as much do not overflow
)

// MaxFiles is how many files an artifact may have.
const MaxFiles = 1000

const unpack = "io.deis.oras.content.unpack" // how oras marks a directory that it packed

const isImage = "it is a container image, which belongs into script.image"

var titleRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+@=-]*(/[A-Za-z0-9_][A-Za-z0-9_.+@=-]*)*$`)

// File is a file of an artifact.
type File struct {
	Name  string // a relative path; empty if it is the only one
	Title string // the same, also for the only one; empty if it has none
	Size  int64
	blob  ocispec.Descriptor
}

// files lists the files that a manifest names: those of its layers that have a title, or its only layer.
func files(mediaType string, text []byte) ([]File, error) {
	switch mediaType {
	case ocispec.MediaTypeImageManifest:
	case ocispec.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.list.v2+json":
		return nil, unsuitable("it is a list of images for several platforms, and no artifact with files")
	case "application/vnd.docker.distribution.manifest.v2+json":
		return nil, unsuitable(isImage)
	default:
		return nil, unsuitable("it is no artifact with files, but of the type %.100q", mediaType)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, unsuitable("its manifest cannot be read: %v", err)
	}
	if manifest.Config.MediaType == ocispec.MediaTypeImageConfig {
		return nil, unsuitable(isImage)
	}
	var titled, untitled []File
	var size int64
	for _, layer := range manifest.Layers {
		f := File{
			Name:  layer.Annotations[ocispec.AnnotationTitle],
			Title: layer.Annotations[ocispec.AnnotationTitle],
			Size:  layer.Size,
			blob:  layer,
		}
		switch {
		case layer.MediaType == ocispec.MediaTypeEmptyJSON:
			continue
		case layer.Size < 0 || layer.Digest.Validate() != nil:
			return nil, unsuitable("its manifest names a layer without size or digest")
		case layer.Size > maxSize-size:
			return nil, unsuitable("it has more than %d GiB", maxSize>>30)
		case layer.Annotations[unpack] == "true":
			return nil, unsuitable("%.100q is a directory: push its files by their names, or an archive of it", f.Name)
		case f.Name == "":
			untitled = append(untitled, f)
		default:
			titled = append(titled, f)
		}
		size += layer.Size
	}
	switch {
	case len(titled) == 0 && len(untitled) == 1:
		return untitled, nil
	case len(titled) == 0:
		return nil, unsuitable(
			"its layers have no names (annotation %s), such as oras push gives them",
			ocispec.AnnotationTitle,
		)
	case len(titled) > MaxFiles:
		return nil, unsuitable("it has %d files, and at most %d are possible: push an archive", len(titled), MaxFiles)
	case len(titled) == 1:
		titled[0].Name = ""
		return titled, nil
	}
	return titled, checkTitles(titled)
}

// checkTitles refuses names that could leave the directory of the input, and those that cannot be there together.
func checkTitles(files []File) error {
	taken := map[string]bool{} // whether it is a file, not a directory
	for _, f := range files {
		if len(f.Name) > maxTitle || !titleRE.MatchString(f.Name) || !filepath.IsLocal(f.Name) ||
			strings.Count(f.Name, "/") > 10 {
			return unsuitable("its file %.100q: expected a relative path of letters, digits and _ . + @ = -", f.Name)
		}
		if _, twice := taken[f.Name]; twice {
			return unsuitable("it has two files called %.100q", f.Name)
		}
		taken[f.Name] = true
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			if taken[dir] {
				return unsuitable("%.100q is a file and a directory of it", dir)
			}
			taken[dir] = false
		}
	}
	return nil
}
