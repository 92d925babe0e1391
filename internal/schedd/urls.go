package schedd

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxURL is the maximum length of a URL.
const maxURL = 1024

// An inputURL has no characters that mean something to condor_submit, HTCondor's lists of files, a shell or a macro. A user name may stand
// before the host, but no password.
var (
	inputURLRE = regexp.MustCompile(`^([a-z][a-z0-9+.-]{0,31})://([A-Za-z0-9._-]+@)?[A-Za-z0-9._:\[\]-]*(/[A-Za-z0-9._~%+=@:!*-]*)+(\?[A-Za-z0-9._~%+=@:!*/?&-]*)?$`)
	landedRE   = regexp.MustCompile(`^[A-Za-z0-9_%][A-Za-z0-9._~%+=@:!*-]*$`)
	schemeRE   = regexp.MustCompile(`^[a-z][a-z0-9+.-]{0,31}$`)
)

// CheckSchemes refuses schemes that no HTCJob may use. A file: URL would name a file of the execute node, which other users' jobs or
// the node's own account may have.
func CheckSchemes(schemes []string) error {
	for _, scheme := range schemes {
		switch {
		case !schemeRE.MatchString(scheme):
			return fmt.Errorf("%q: expected a scheme such as https", scheme)
		case scheme == "file":
			return fmt.Errorf("file names files of the execute node itself: it is never allowed")
		}
	}
	return nil
}

// checkScheme refuses a URL whose scheme the site does not allow.
func (d Description) checkScheme(url string) error {
	scheme, _, _ := strings.Cut(url, "://")
	if scheme != "file" && slices.Contains(d.AllowSchemes, scheme) {
		return nil
	}
	if len(d.AllowSchemes) == 0 {
		return refused("%s: this site allows no URLs (--allow-url-schemes)", url)
	}
	return refused("%s: this site allows the schemes %s (--allow-url-schemes)", url, strings.Join(d.AllowSchemes, ", "))
}

// checkInputURLs refuses URLs that could do more than name a file, and those that HTCondor would put where another file is.
func (d Description) checkInputURLs() error {
	landed := map[string]string{}
	for _, in := range d.Inputs {
		if in.URL == "" {
			landed[in.Name] = in.Name
		}
	}
	for _, in := range d.Inputs {
		if in.URL == "" {
			continue
		}
		if len(in.URL) > maxURL || !inputURLRE.MatchString(in.URL) {
			return refused("spec.inputs: %s: url %q: expected scheme://host/path of at most %d letters, digits and _ . ~ %% + = @ : ! * - /, without a password; write other characters as %%XX",
				in.Name, clip(in.URL), maxURL)
		}
		if err := d.checkScheme(in.URL); err != nil {
			return refused("spec.inputs: %s: %w", in.Name, err)
		}
		file := in.landed()
		if !landedRE.MatchString(file) || slices.Contains(takenFiles, file) || strings.HasPrefix(file, "_condor") {
			return refused("spec.inputs: %s: url %q: HTCondor fetches it to a file called as the last part of its path, and %q is no name for one here", in.Name, in.URL, file)
		}
		if other, taken := landed[file]; taken {
			return refused("spec.inputs: %s: url %q: HTCondor fetches it to the file %s, which is also that of the input %s: fetch one of them in the script, or under another name",
				in.Name, in.URL, file, other)
		}
		landed[file] = in.Name
	}
	return nil
}

// landed is the name under which HTCondor puts the file of a URL.
func (in Input) landed() string {
	url, _, _ := strings.Cut(in.URL, "?")
	return path.Base("/" + url[strings.LastIndexByte(url, '/')+1:])
}

// inputURLs lists the URLs among the inputs.
func (d Description) inputURLs() []string {
	var urls []string
	for _, in := range d.Inputs {
		if in.URL != "" {
			urls = append(urls, in.URL)
		}
	}
	return urls
}

// inputMoves lists the inputs that HTCondor puts under other names, as name/othername.
func (d Description) inputMoves() string {
	var moves []string
	for _, in := range d.Inputs {
		if in.URL != "" && in.landed() != in.Name {
			moves = append(moves, in.Name+"/"+in.landed())
		}
	}
	return strings.Join(moves, " ")
}
