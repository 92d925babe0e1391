package cache

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// debianMirror returns the address of the Debian archive: override, else the one that the machine's own apt uses.
func debianMirror(aptDir, override string) (string, error) {
	if override != "" {
		return override, nil
	}
	files := []string{filepath.Join(aptDir, "sources.list")}
	for _, pattern := range []string{"*.sources", "*.list"} {
		found, err := filepath.Glob(filepath.Join(aptDir, "sources.list.d", pattern))
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	var sources []source
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if strings.HasSuffix(file, ".sources") {
			sources = append(sources, parseDeb822(string(text))...)
		} else {
			sources = append(sources, parseOneLine(string(text))...)
		}
	}
	uri, ok := chooseDebian(sources)
	if !ok {
		return "", errors.New("no Debian archive among the sources of " + aptDir +
			": set HTCD_DEBIAN_MIRROR to the address of one")
	}
	// Cloud images name a file that lists mirrors instead.
	if list, ok := strings.CutPrefix(uri, "mirror+file:"); ok {
		text, err := os.ReadFile(list)
		if err != nil {
			return "", err
		}
		fields := strings.Fields(string(text))
		if len(fields) == 0 {
			return "", errors.New(list + " lists no mirror: set HTCD_DEBIAN_MIRROR")
		}
		return fields[0], nil
	}
	return uri, nil
}

// source is one archive in the sense of sources.list(5).
type source struct {
	uri                string
	suites, components []string
}

// debianSuites are the names under which Debian, and nobody else, publishes a whole archive.
var debianSuites = []string{
	"stable",
	"oldstable",
	"testing",
	"unstable",
	"sid",
	"bullseye",
	"bookworm",
	"trixie",
	"forky",
}

// chooseDebian picks the first archive with one of Debian's own suites and the component main. Other archives use such
// suite names too, but name their components differently or serve from another path, hence the preference.
func chooseDebian(sources []source) (uri string, ok bool) {
	for _, s := range sources {
		mine := slices.Contains(s.components, "main") &&
			slices.ContainsFunc(s.suites, func(suite string) bool { return slices.Contains(debianSuites, suite) })
		if !mine {
			continue
		}
		plain := strings.TrimSuffix(s.uri, "/")
		if strings.HasSuffix(plain, "/debian") || strings.HasSuffix(plain, "/debian.list") {
			return s.uri, true
		}
		if !ok {
			uri, ok = s.uri, true
		}
	}
	return uri, ok
}

// parseDeb822 reads the paragraphs of a .sources file.
func parseDeb822(text string) []source {
	var out []source
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		field := map[string][]string{}
		last := ""
		for line := range strings.Lines(paragraph) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
				last = strings.ToLower(strings.TrimSpace(name))
				line = value
			}
			field[last] = append(field[last], strings.Fields(line)...)
		}
		if slices.Equal(field["enabled"], []string{"no"}) || !slices.Contains(field["types"], "deb") {
			continue
		}
		for _, uri := range field["uris"] {
			out = append(out, source{uri, field["suites"], field["components"]})
		}
	}
	return out
}

// parseOneLine reads the lines of a .list file: deb [options] uri suite component...
func parseOneLine(text string) []source {
	var out []source
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") {
			_, line, _ = strings.Cut(line, "]")
		}
		if fields := strings.Fields(line); len(fields) >= 3 {
			out = append(out, source{fields[0], fields[1:2], fields[2:]})
		}
	}
	return out
}
