package submit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// ownNumber is the variable of the submit description that replaces procNumber where the procs have numbers of their
// own.
const ownNumber = "HTCJobProc"

// queueTableRE matches the queue statement that queued writes: what a proc has of its own on each line.
var queueTableRE = regexp.MustCompile(`(?m)^queue [A-Za-z, ]+ from \(\n((?:[^)\n]+\n)+)\)\n$`)

// number returns the number of a proc of the cluster.
func (d Description) number(proc int) int {
	if len(d.Numbers) == 0 {
		return proc
	}
	return d.Numbers[proc]
}

func (d Description) checkNumbers() error {
	switch {
	case len(d.Numbers) == 0:
	case len(d.Numbers) != d.Queue:
		return condor.Refusal("%d numbers for %d jobs: expected one for each", len(d.Numbers), d.Queue)
	case d.Numbers[0] < 0 || !slices.IsSorted(d.Numbers) || len(slices.Compact(slices.Clone(d.Numbers))) != d.Queue:
		return condor.Refusal("the numbers of the jobs: expected them in order, each once")
	}
	return nil
}

// queued completes a checked submit description by a table with what the procs have of their own: their numbers, each
// of which is in its proc's ad, too, and their URLs.
func (d Description) queued(submit string) string {
	var names []string
	lines, _ := strings.CutSuffix(submit, fmt.Sprintf("queue %d\n", d.Queue))
	if len(d.Numbers) > 0 {
		names = append(names, ownNumber)
		lines = strings.ReplaceAll(
			lines,
			procNumber,
			"$("+ownNumber+")",
		) + fmt.Sprintf(
			"My.%s = $(%s)\n",
			condor.AttrNumber,
			ownNumber,
		)
	}
	urls := d.ownURLsOf()
	if urls != nil {
		names = append(names, ownURLs)
	}
	if len(names) == 0 {
		return submit
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%squeue %s from (\n", lines, strings.Join(names, ", "))
	for proc := range d.Queue {
		var row []string
		if len(d.Numbers) > 0 {
			row = append(row, strconv.Itoa(d.Numbers[proc]))
		}
		if urls != nil {
			row = append(row, strings.Join(append([]string{fileScript}, urls[proc]...), ","))
		}
		b.WriteString(strings.Join(row, " ") + "\n")
	}
	b.WriteString(")\n")
	return b.String()
}
