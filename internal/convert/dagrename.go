package convert

import (
	"path"
	"slices"
)

// A step whose output a step after has as an input under another name, by transfer_output_remaps, gives it that name
// itself: so what several nodes call alike does not meet in one job.

// rename does that for what a job of a step calls so, and returns what it is called then, and the pattern of that for
// all jobs; empty: none is renamed.
func (s *stepper) rename(job int, file string) (to, pattern string) {
	of := s.a.g.parts
	k := slices.IndexFunc(of[job].lands.remaps, func(r remap) bool { return r.is(file) })
	if k < 0 {
		return file, ""
	}
	if pattern, known := s.renames[k]; known {
		if pattern == "" {
			return file, ""
		}
		return of[job].lands.remaps[k].from, pattern
	}
	if s.renames == nil {
		s.renames = map[int]string{}
	}
	s.renames[k] = ""
	if !slices.ContainsFunc(of, func(p parts) bool { return !p.renames(k) }) {
		for i := range of {
			of[i].rename(k)
		}
		s.a.g.marked.rename(k)
		s.prints = nil
	}
	for i, p := range of {
		if k >= len(p.lands.remaps) || p.lands.remaps[k].from != path.Base(p.lands.remaps[k].to) {
			return file, ""
		}
		switch name := p.lands.remaps[k].from; {
		case i == 0:
			pattern = name
		case name != pattern:
			pattern = common(pattern, name)
		}
	}
	s.renames[k] = pattern
	return of[job].lands.remaps[k].from, pattern
}

// renames reports whether the job can give what this remap is of another name.
func (p parts) renames(k int) bool {
	if len(p.lands.remaps) <= k {
		return false
	}
	r := p.lands.remaps[k]
	name := path.Base(r.to)
	return name != r.from && outputRE.MatchString(name) && !reservedRE.MatchString(name) && !urlRE.MatchString(r.to) &&
		!slices.Contains(p.outputs, name) && p.named == slices.ContainsFunc(p.outputs, r.is)
}

func (p *parts) rename(k int) {
	if len(p.lands.remaps) <= k {
		return
	}
	r := p.lands.remaps[k]
	to := remap{r.from, path.Base(r.to)}
	p.outputs, p.lands.remaps = slices.Clone(p.outputs), slices.Clone(p.lands.remaps)
	if i := slices.IndexFunc(p.outputs, r.is); i >= 0 {
		to.from, p.outputs[i] = p.outputs[i], to.to
	}
	p.lands.remaps[k].from = to.to
	p.renamed = append(p.renamed, to)
}

// renamed are the lines that give outputs their names.
func (a *assembly) renamed() []string {
	var lines []string
	at := func(p parts, k int) remap {
		if k < len(p.renamed) {
			return p.renamed[k]
		}
		return remap{}
	}
	for k := range a.g.parts[0].renamed {
		from := a.phrase("MADE", func(p parts) string { return at(p, k).from })
		to := a.phrase("OUTPUT", func(p parts) string { return at(p, k).to })
		lines = append(lines, "[ ! -e "+from+" ] || mv "+from+" "+to)
	}
	return lines
}
