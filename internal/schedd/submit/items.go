package submit

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// fileOwn begins the name of the file that one proc alone gets: its number follows. It has what fileToken has, and then
// the proc's item, and travels instead of it, so that HTCondor spools no more files for a proc with an item.
const fileOwn = ".own-"

// procOwn is such a file's name in the submit description.
const procOwn = fileOwn + "$(ProcId)"

// checkItems refuses items that do not fit the description. Their variables have passed CheckVariable.
func (d Description) checkItems() error {
	if len(d.Items) == 0 {
		return nil
	}
	if len(d.Items) != d.Queue {
		return condor.Refusal("%d items for %d jobs: expected one for each", len(d.Items), d.Queue)
	}
	common := len(environmentFile(d.Environment))
	for proc, item := range d.Items {
		if err := checkLines(fmt.Sprint("job ", d.number(proc)), item, common); err != nil {
			return err
		}
		if err := d.checkArgsOf(fmt.Sprint("job ", d.number(proc)), item); err != nil {
			return err
		}
		if item == "" {
			return condor.Refusal("the variables of job %d: expected lines NAME=value", d.number(proc))
		}
	}
	return nil
}

// checkLines refuses variables of a single job that are not lines NAME=value, or too long beside those of all.
func checkLines(job, lines string, common int) error {
	if common+len(lines) > maxEnvironment {
		return condor.Refusal(
			"the variables of %s and spec.environment: expected at most 64 KiB together, found %d bytes: put them into a file that the script reads",
			job,
			common+len(lines),
		)
	}
	if lines != "" && !strings.HasSuffix(lines, "\n") || strings.ContainsAny(lines, "\x00\r") {
		return condor.Refusal("the variables of %s: expected lines NAME=value", job)
	}
	for line := range strings.Lines(lines) {
		if name, _, found := strings.Cut(line, "="); !found || !variableRE.MatchString(name) {
			return condor.Refusal("the variables of %s: expected lines NAME=value", job)
		}
	}
	return nil
}

// itemFiles returns one file for each proc, without the tokens that Stage puts first.
func (d Description) itemFiles() []File {
	files := make([]File, len(d.Items))
	for proc, item := range d.Items {
		files[proc] = File{Name: fmt.Sprint(fileOwn, d.number(proc)), Mode: 0o600, Content: item, OfProc: true}
	}
	return files
}
