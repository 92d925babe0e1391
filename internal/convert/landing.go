package convert

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// remap says where a file of a job goes.
type remap struct{ from, to string }

// is reports whether a file of the job is meant.
func (r remap) is(file string) bool { return r.from == file || r.from == path.Base(file) }

// lands are the places on this machine of what a job leaves, as condor_submit would have them.
type lands struct {
	dir            string
	stdout, stderr string
	remaps         []remap
}

// local reports whether htcd get-output can put a file there: it writes only below its directory.
func local(place string) bool {
	return place != "" && len(place) <= 400 && filepath.IsLocal(place) && !strings.ContainsFunc(place, unicode.IsControl)
}

// in is a place as the directory of the submit file has it.
func (l lands) in(place string) string {
	if place == "" || path.IsAbs(place) {
		return place
	}
	return path.Join(l.dir, place)
}

// below is a directory as the directory has it in which the workflow is sent: that of a node with DIR is another one.
func (c *converter) below(dir string) string {
	if path.IsAbs(dir) || c.dir == "" {
		return dir
	}
	return path.Join(c.dir, dir)
}

// remapsOf reads transfer_output_remaps: "NAME = PLACE; NAME = PLACE".
func remapsOf(value string) []remap {
	var all []remap
	for part := range strings.SplitSeq(strings.Trim(value, `"`), ";") {
		from, to, is := strings.Cut(part, "=")
		if from, to = strings.TrimSpace(from), strings.TrimSpace(to); is && from != "" && to != "" {
			all = append(all, remap{from, to})
		}
	}
	return all
}

// files are the places of a job's files that are not in its directory under their own paths.
func (p parts) files() []remap {
	var all []remap
	if !p.named {
		for _, r := range p.lands.remaps {
			if !urlRE.MatchString(r.to) {
				all = append(all, remap{r.from, p.lands.in(r.to)})
			}
		}
		return all
	}
	for _, file := range p.outputs {
		to := p.lands.remapped(file)
		if urlRE.MatchString(to) {
			continue
		}
		if to == "" && strings.Contains(file, "/") && !p.keeps {
			to = path.Base(file) // HTCondor brings no directories back above what is named
		}
		if to != "" {
			all = append(all, remap{file, p.lands.in(to)})
		}
	}
	return all
}

// remapped is where a file of a job goes; empty: under its own name.
func (l lands) remapped(file string) string {
	for _, r := range l.remaps {
		if r.is(file) {
			return r.to
		}
	}
	return ""
}

// at is where HTCondor puts an output of the job, from the directory of the DAG.
func (p parts) at(file string) string {
	to := p.lands.remapped(file)
	if to == "" {
		if to = file; !p.keeps {
			to = path.Base(file)
		}
	}
	return path.Clean(p.lands.in(to))
}

// called is the output that HTCondor puts there.
func (p parts) called(at string) (string, bool) {
	for _, file := range p.leaves() {
		if p.at(file) == at {
			return file, true
		}
	}
	return "", false
}

// leaves are the outputs that are known: those that are named or, if none are, those that have places.
func (p parts) leaves() []string {
	all := slices.Clip(p.outputs)
	if !p.named {
		for _, r := range p.lands.remaps {
			all = append(all, r.from)
		}
	}
	return all
}

// unnamed is what HTCondor would put there if the job, which names no outputs, left it.
func (p parts) unnamed(at string) (string, bool) {
	file := path.Base(at)
	return file, !p.named && p.at(file) == at
}

// landing says where get-output puts what the jobs bring back, if the file says anything of it.
func (a *assembly) landing() {
	said := slices.ContainsFunc(a.g.parts, func(p parts) bool {
		return p.lands.dir != "" || p.lands.stdout != "" || p.lands.stderr != "" || len(p.files()) > 0
	})
	if !said {
		return
	}
	l := &v1alpha1.Landing{
		Directory: a.place("DIRECTORY", a.home(""), func(p parts) string { return path.Join(".", p.lands.dir) }),
		Stdout:    a.place("STDOUT", a.home("/stdout"), func(p parts) string { return p.lands.in(p.lands.stdout) }),
		Stderr:    a.place("STDERR", a.home("/stderr"), func(p parts) string { return p.lands.in(p.lands.stderr) }),
	}
	if a.g.shape.Joined {
		l.Stderr = v1alpha1.LandingPlace(a.home("/stderr"))
	}
	a.spec.Landing = l
	n := len(a.g.parts[0].files())
	if slices.ContainsFunc(a.g.parts, func(p parts) bool { return len(p.files()) != n }) {
		return
	}
	at := func(p parts, k int) remap {
		if files := p.files(); k < len(files) {
			return files[k]
		}
		return remap{}
	}
	for k := range n {
		to := a.place("PLACE"+strconv.Itoa(k+1), "", func(p parts) string { return at(p, k).to })
		if to == "" {
			continue
		}
		from := a.text(
			"FROM"+strconv.Itoa(k+1),
			at(a.g.marked, k).from,
			func(i int) string { return at(a.g.parts[i], k).from },
		)
		if l.Files == nil {
			l.Files = map[string]v1alpha1.LandingPlace{}
		}
		l.Files[from] = to
	}
}

// home is a file in a job's own directory, or of a node nothing: it is there by itself. Where what is printed has no
// other place, it is not among the files of all jobs.
func (a *assembly) home(file string) string {
	if a.c.counted == nodes {
		return ""
	}
	return "{{proc}}" + file
}

// place is one that get-output can have, or otherwise this one.
func (a *assembly) place(name, otherwise string, of func(parts) string) v1alpha1.LandingPlace {
	for _, p := range a.g.parts {
		if !local(of(p)) {
			return v1alpha1.LandingPlace(otherwise)
		}
	}
	return v1alpha1.LandingPlace(a.text(name, of(a.g.marked), func(i int) string { return of(a.g.parts[i]) }))
}

// lands reads where a job's files go on this machine.
func (v *view) lands() lands {
	var l lands
	l.stdout, _ = v.value("output")
	l.stderr, _ = v.value("error")
	if value, by := v.value("transfer_output_remaps"); by != nil {
		l.remaps = remapsOf(value)
	}
	return l
}

// stream says where standard output or error goes.
func stream(v *view, value string, by *submitfile.Statement) {
	if other, _, err := valueOfCommand(v.job, "error"); err == nil && other == value {
		if out, _, err := valueOfCommand(v.job, "output"); err == nil && out == value {
			v.shape.Joined = true
		}
	}
	if dir, _, err := valueOfCommand(v.job, "initialdir"); err == nil &&
		local(lands{dir: v.c.below(dir)}.in(value)) {
		v.say(by, Taken, "htcd logs shows it, too", "", "spec.landing")
		return
	}
	name := "stdout"
	if lower := strings.ToLower(by.Name); (lower == "error" || lower == "stderr") && !v.shape.Joined {
		name = "stderr"
	}
	where := "DIR/N/" + name + ", for N the job's number"
	if v.c.counted == nodes {
		where = "DIR/STEP/JOBID/" + name
	}
	v.say(by, Taken, "htcd logs shows it; htcd get-output DIR has it as "+where, "", "")
}

func remaps(v *view, value string, by *submitfile.Statement) {
	field := ""
	for _, r := range remapsOf(value) {
		switch {
		case urlRE.MatchString(r.to):
			v.writes(by, r)
		case !local(r.to):
			v.say(by, Taken, "htcd get-output DIR has "+r.from+" in the directory of its job", "", "")
			return
		default:
			field = "spec.landing"
		}
	}
	v.say(by, Taken, "", "", field)
}
