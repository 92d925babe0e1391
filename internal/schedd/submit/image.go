package submit

import (
	"path"
	"regexp"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

const namePart = `[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*`

var (
	// imageRE matches host:port/path/name:tag@digest, all but one name optional.
	imageRE = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?` + namePart + `(/` + namePart + `)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@[A-Za-z0-9+._-]+:[A-Fa-f0-9]+)?$`)
	pathRE = regexp.MustCompile(`^/[A-Za-z0-9._/:@+=~-]+$`)
)

// resolveImage converts an HTCJob's image to what singularity takes: an absolute path, docker://, oras:// and
// library:// stay as they are; a bare reference becomes docker://, prefixed with registry if that is not empty and the
// reference names none itself. Errors are of kind Refused.
func resolveImage(image, registry string) (string, error) {
	if strings.HasPrefix(image, "/") {
		if !pathRE.MatchString(image) || path.Clean(image) != strings.TrimSuffix(image, "/") {
			return "", condor.Refusal("image %q: expected a clean path of letters, digits and . _ / : @ + = ~ -", image)
		}
		return image, nil
	}
	scheme, ref, ok := strings.Cut(image, "://")
	if !ok {
		scheme, ref = "docker", image
	}
	switch scheme {
	case "docker", "oras", "library":
	default:
		return "", condor.Refusal(
			"image %q: the scheme %q is not known; write a docker reference, docker://, oras://, library:// or an absolute path",
			image,
			scheme,
		)
	}
	if !imageRE.MatchString(ref) {
		return "", condor.Refusal(
			"image %q: expected a reference such as centos, registry.example.org/group/image:tag, docker://..., or an absolute path",
			image,
		)
	}
	if !ok && registry != "" && !namesRegistry(ref) {
		ref = strings.TrimSuffix(registry, "/") + "/" + ref
	}
	return scheme + "://" + ref, nil
}

// ImageRegistry returns the registry, host[:port], from which a node fetches an image with a login; empty: it fetches
// none, or no login would serve. The arguments are Description's.
func ImageRegistry(image, registry string) string {
	resolved, err := resolveImage(image, registry)
	scheme, ref, _ := strings.Cut(resolved, "://")
	if err != nil || scheme != "docker" && scheme != "oras" {
		return ""
	}
	if !namesRegistry(ref) {
		return "docker.io"
	}
	host, _, _ := strings.Cut(ref, "/")
	return host
}

// namesRegistry applies docker's rule: the first of several components is a host if it contains a dot or a colon, or is
// localhost.
func namesRegistry(ref string) bool {
	host, _, ok := strings.Cut(ref, "/")
	return ok && (strings.ContainsAny(host, ".:") || host == "localhost")
}
