package krb

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// profile is what krb5.conf says about realms.
type profile struct {
	defaultRealm string
	realms       map[string]bool // the subsections of [realms]
}

// mostIncludes bounds how deep files may include each other.
const mostIncludes = 16

// readProfile reads krb5.conf as MIT krb5 does (krb5.conf(5)): several files if the path has colons, of which some may
// be missing, and what they include. A value that is there twice counts where it is first.
func readProfile(path string) (profile, error) {
	p := profile{realms: map[string]bool{}}
	var missing error
	read := 0
	for _, name := range strings.Split(cmp.Or(path, "/etc/krb5.conf"), ":") {
		err := p.add(name, 0)
		switch {
		case err == nil:
			read++
		case errors.Is(err, os.ErrNotExist):
			missing = errors.Join(missing, err)
		default:
			return profile{}, err
		}
	}
	if read == 0 {
		return profile{}, missing
	}
	return p, nil
}

// named returns all realms, in order.
func (p profile) named() []string {
	all := maps.Clone(p.realms)
	if p.defaultRealm != "" {
		all[p.defaultRealm] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// include fails other than by os.ErrNotExist: a file that another one names is not one that may be missing.
func (p *profile) include(directive, name string, depth int) error {
	if depth >= mostIncludes {
		return fmt.Errorf("%s %s: files include each other more than %d deep", directive, name, mostIncludes)
	}
	if directive == "include" {
		if err := p.add(name, depth+1); err != nil {
			return fmt.Errorf("include: %s", err)
		}
		return nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return fmt.Errorf("includedir: %s", err)
	}
	for _, entry := range entries { // sorted
		if !entry.IsDir() && isIncluded(entry.Name()) {
			if err := p.add(filepath.Join(name, entry.Name()), depth+1); err != nil {
				return fmt.Errorf("includedir: %s", err)
			}
		}
	}
	return nil
}

// isIncluded reports whether includedir takes a file of that name: not copies of editors and package managers.
func isIncluded(name string) bool {
	if strings.HasSuffix(name, ".conf") && !strings.HasPrefix(name, ".") {
		return true
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// add reads one file.
func (p *profile) add(name string, depth int) error {
	text, err := os.ReadFile(name) // #nosec G304 -- the administrator's
	if err != nil {
		return err
	}
	var section string
	began, brace, level := false, false, 0
	for n, line := range strings.Split(string(text), "\n") {
		wrong := func(what string) error { return fmt.Errorf("%s:%d: %s", name, n+1, what) }
		if directive, of, ok := cutBlank(line); ok && (directive == "include" || directive == "includedir") {
			if err := p.include(directive, of, depth); err != nil {
				return wrong(err.Error())
			}
			continue
		}
		if began = began || strings.HasPrefix(line, "["); !began {
			continue // all before the first section is a comment
		}
		line = strings.TrimSpace(line)
		switch {
		case brace:
			if !strings.HasPrefix(line, "{") {
				return wrong("want { after a name without a value")
			}
			brace, level = false, level+1
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			of, _, closed := strings.Cut(line[1:], "]")
			if !closed || level > 0 {
				return wrong("want a section such as [realms], outside of braces")
			}
			section = strings.TrimSpace(of)
		case line[0] == '}':
			if level--; level < 0 {
				return wrong("there is a } too many")
			}
		default:
			tag, value, ok := strings.Cut(line, "=")
			if !ok {
				return wrong("want name = value")
			}
			tag, value = strings.TrimSuffix(strings.TrimSpace(tag), "*"), strings.TrimSpace(value)
			opens := strings.HasPrefix(value, "{") && strings.TrimSpace(value[1:]) == ""
			if level == 0 {
				p.take(section, tag, value, opens || value == "")
			}
			if brace = value == ""; opens {
				level++
			}
		}
	}
	return nil
}

// take notes what is at the top of a section.
func (p *profile) take(section, tag, value string, opens bool) {
	switch {
	case section == "realms" && opens:
		p.realms[tag] = true
	case section == "libdefaults" && tag == "default_realm" && p.defaultRealm == "" && !opens:
		if quoted, ok := strings.CutPrefix(value, `"`); ok {
			value, _, _ = strings.Cut(quoted, `"`)
		}
		p.defaultRealm = value
	}
}

// cutBlank splits a line that begins with a word.
func cutBlank(line string) (word, rest string, ok bool) {
	i := strings.IndexAny(line, " \t")
	if i <= 0 {
		return "", "", false
	}
	return line[:i], strings.TrimSpace(line[i:]), true
}
