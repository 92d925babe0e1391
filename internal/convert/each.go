package convert

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// each adds the inputs of jobs that have equally many, one for each place in their lists, and reports whether it could:
// steps have the same files for all jobs, and the files of one place have to fit into a ConfigMap.
func (a *assembly) each() bool {
	n := len(a.g.parts[0].inputs)
	if a.c.counted == nodes || n > maxInputs-1 {
		return false
	}
	for _, p := range a.g.parts {
		if len(p.inputs) != n {
			return false
		}
	}
	for at := range n {
		if !a.same(at) && !a.fit(at) {
			return false
		}
	}
	for at := range n {
		first := a.g.parts[0].inputs[at]
		target := func(p parts) string {
			if at < len(p.inputs) {
				return p.inputs[at].target
			}
			return ""
		}
		switch {
		case slices.Index(a.g.parts[0].inputs, first) < at && a.same(at): // it is named twice
		case a.same(at):
			name, err := a.stage(first, false, true)
			if err != nil {
				a.lose(err.Error(), fileInstead(err), "transfer_input_files", "input")
				continue
			}
			a.put(quote(name), first.target)
		case !slices.ContainsFunc(a.g.parts, func(p parts) bool { return target(p) != first.target }):
			a.put(quote(a.input(a.varying(at), first.target)), first.target)
		default:
			name := a.input(a.varying(at), "input-"+strconv.Itoa(at+1))
			word := a.phrase("FILE"+strconv.Itoa(at+1), target)
			a.before, a.moved = append(a.before, "mv "+name+" "+word), append(a.moved, word)
			a.places = true
		}
	}
	return true
}

// same reports whether all jobs want the same at a place of their lists.
func (a *assembly) same(at int) bool {
	return !slices.ContainsFunc(a.g.parts, func(p parts) bool { return p.inputs[at] != a.g.parts[0].inputs[at] })
}

// fit reports whether what the jobs want at a place is URLs, or files beside each other in their directories that one
// ConfigMap holds.
func (a *assembly) fit(at int) bool {
	size, seen, isURL := int64(0), map[string]bool{}, urlRE.MatchString(a.g.parts[0].inputs[at].source)
	for _, p := range a.g.parts {
		w := p.inputs[at]
		if urlRE.MatchString(w.source) != isURL || strings.Contains(w.target, "/") {
			return false
		}
		if seen[w.source] || isURL {
			continue
		}
		seen[w.source] = true
		n, err := a.c.env.Size(w.source)
		if size += n; err != nil || size > maxBundle {
			return false
		}
	}
	return a.c.bundles.total+size <= maxBundles
}

// varying is the input for what the jobs want at a place. What their sources are called follows from their items.
func (a *assembly) varying(at int) v1alpha1.Input {
	marked := ""
	if at < len(a.g.marked.inputs) {
		marked = a.g.marked.inputs[at].source
	}
	name := "INPUT" + strconv.Itoa(at+1)
	if urlRE.MatchString(a.g.parts[0].inputs[at].source) {
		return v1alpha1.Input{URL: a.text(name, marked, func(i int) string { return a.g.parts[i].inputs[at].source })}
	}
	sources := make([]string, len(a.g.parts))
	for i, p := range a.g.parts {
		sources[i] = p.inputs[at].source
	}
	keys, ref, err := a.c.bundles.files(sources)
	if err != nil {
		a.lose(err.Error(), fileInstead(err), "transfer_input_files", "input")
		return v1alpha1.Input{ConfigMapKeyRef: &v1alpha1.KeyRef{}}
	}
	ref.Key = a.text(name, path.Base(marked), func(i int) string { return keys[sources[i]] })
	return v1alpha1.Input{ConfigMapKeyRef: ref}
}

// text is a text of the spec that htcd fills for each job: a text with marks, or a variable of this name if that does
// not give all their values.
func (a *assembly) text(name, marked string, value func(i int) string) string {
	if first, same := a.constant(value); same {
		return first
	}
	t := parseTemplate(marked)
	for i := range a.g.jobs {
		if t.fill(func(macro string) string { return valueOf(a.g.jobs[i], macro) }) != value(i) {
			pieces := a.around(name, value, func(text string) string { return text },
				func(variable string) string { return "{{item." + variable + "}}" })
			return strings.Join(pieces, clusterPlace)
		}
	}
	return t.fill(func(macro string) string {
		if variable := a.shellName(macro); variable != "HTCPROCID" {
			return "{{item." + variable + "}}"
		}
		return "{{proc}}"
	})
}

// constant is a value that all jobs have.
func (a *assembly) constant(value func(i int) string) (first string, same bool) {
	first, same = value(0), true
	for i := range a.g.jobs {
		same = same && value(i) == first
	}
	return first, same
}
