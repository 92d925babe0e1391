package submit

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// CheckDefaultImage refuses the image of a pool's defaults that its jobs could not use. The arguments are those of
// Description.
func CheckDefaultImage(image, registry string, allowed, ofPool []string) error {
	_, err := Description{Image: image, ImageRegistry: registry, AllowImages: allowed, PoolImages: ofPool}.usableImage()
	return err
}

// usableImage returns the image as singularity takes it, if the administrator and the pool allow it.
func (d Description) usableImage() (string, error) {
	image, err := resolveImage(d.Image, d.ImageRegistry)
	if err != nil {
		return "", err
	}
	if err := allowImage(image, d.AllowImages, "the administrator of htcd"); err != nil {
		return "", err
	}
	return image, allowImage(image, d.PoolImages, strings.TrimSpace("HTCPool "+d.Tag.Pool))
}

// allowImage refuses an image, as returned by resolveImage, that no pattern matches; without patterns every image is
// allowed. In a pattern, * and ? stand for characters other than /, [a-z] for one of those, and a last element ** for
// anything below:
//
//	docker://registry.example.org/physics/*    any image and tag of that group
//	/cvmfs/unpacked.cern.ch/**                 everything unpacked there
func allowImage(image string, patterns []string, allower string) error {
	for _, pattern := range patterns {
		if matchImage(image, pattern) {
			return nil
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	return condor.Refusal(
		"image %s is not among those that %s allows: %s",
		image,
		allower,
		strings.Join(patterns, ", "),
	)
}

func matchImage(image, pattern string) bool {
	if above, below := strings.CutSuffix(pattern, "/**"); below {
		depth := strings.Count(above, "/") + 1
		elements := strings.Split(strings.TrimSuffix(image, "/"), "/")
		if len(elements) <= depth {
			return false
		}
		image, pattern = strings.Join(elements[:depth], "/"), above
	}
	matched, err := path.Match(pattern, image)
	return err == nil && matched
}

// CheckImagePatterns reports a pattern that can match no image.
func CheckImagePatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(strings.TrimSuffix(p, "/**"), ""); err != nil {
			return fmt.Errorf("%q is no pattern: %w", p, err)
		}
		scheme, _, found := strings.Cut(p, "://")
		switch {
		case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
			return fmt.Errorf("%q: no image's name has blanks or control characters", p)
		case found && (scheme == "docker" || scheme == "oras" || scheme == "library"):
		case !found && strings.HasPrefix(p, "/"):
		default:
			return fmt.Errorf(
				"%q: want an absolute path, or docker://, oras:// or library:// in front, as images are resolved to that",
				p,
			)
		}
	}
	return nil
}
