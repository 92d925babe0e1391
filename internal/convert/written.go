package convert

import (
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// What htcd fills into the URLs of outputs.
const (
	numberInURL  = "{proc}"
	clusterInURL = "{name}-{attempt}"
)

// outputURL matches what the API takes.
var outputURL = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([A-Za-z0-9._-]+@)?[A-Za-z0-9._:\[\]-]*` +
	`(/([A-Za-z0-9._~%+@:!*-]|` + regexp.QuoteMeta(clusterPlace) + `)*)+$`)

func isOutputURL(to string) bool {
	return outputURL.MatchString(to) && !strings.Contains(to, "/..") && !strings.HasSuffix(to, "/") &&
		!strings.HasPrefix(to, "file:")
}

// writes says what becomes of an output that the node writes to a URL.
func (v *view) writes(by *submitfile.Statement, r remap) {
	named, _ := v.value("transfer_output_files")
	words, instead := "", "url at one of spec.outputs (docs/data.md)"
	switch {
	case v.c.counted == nodes:
		words, instead = "nodes write to URLs that name them", "url at job.outputs of the step, with {jobid} in it (docs/workflows.md)"
	case !slices.ContainsFunc(commas(named), func(file string) bool { return r.is(file) }):
		words, instead = "only what transfer_output_files names can go to a URL", r.from+" in transfer_output_files"
	case strings.HasPrefix(r.to, "file:"):
		words, instead = r.to+" is a place of the execute node",
			"a copy that the program makes there itself, if the container has that directory"
	case !isOutputURL(r.to):
		words = r.to + " is no URL of letters, digits and _ . ~ % + @ : ! * - that ends with a name"
	default:
		v.say(by, Taken, "", "", "spec.outputs")
		return
	}
	v.say(by, Cannot, words, instead, "")
}

// url is where the jobs write an output to, whose path or pattern this is; empty: they bring it back.
func (a *assembly) url(at int, path string) string {
	to := func(p parts) string { return p.lands.remapped(p.outputs[at]) }
	if to := to(a.g.parts[0]); a.c.counted == nodes || !isOutputURL(to) {
		return ""
	}
	lost := func(why, instead string) string {
		a.lose(why, instead, "transfer_output_remaps")
		return ""
	}
	marked := ""
	if at < len(a.g.marked.outputs) {
		marked = to(a.g.marked)
	}
	other := func(p piece) bool { return p.variable != "" && (p.variable != "process" || !a.numbered()) }
	if slices.ContainsFunc(parseTemplate(marked), other) {
		return lost("only the job's number may tell URLs of jobs apart", "$(Process) in the URL")
	}
	url := a.text("URL", marked, func(i int) string { return to(a.g.parts[i]) })
	if _, by, err := valueOfCommand(a.g.jobs[0], "transfer_output_remaps"); err == nil &&
		strings.Contains(url, clusterPlace) {
		words := "the URL has " + clusterInURL + " for the cluster's number"
		a.c.say(by, Line{Verdict: Taken, Words: words, field: "spec.outputs"})
	}
	url = strings.NewReplacer("{{proc}}", numberInURL, clusterPlace, clusterInURL).Replace(url)
	switch {
	case strings.Contains(path, "*"):
		return lost("what goes to a URL has the same name in each job", "a name without macros")
	case len(a.g.jobs) > 1 && !strings.Contains(url, numberInURL):
		return lost("all jobs would write to the same place", "$(Process) in the URL")
	}
	return url
}
