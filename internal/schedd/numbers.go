package schedd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ownNumber is the variable of the submit description that replaces procNumber where the procs have numbers of their own.
const ownNumber = "HTCJobProc"

// queueNumbersRE matches the queue statement of such a description: a number on each line.
var queueNumbersRE = regexp.MustCompile(`(?m)^queue ` + ownNumber + ` from \(\n((?:\d+\n)+)\)\n$`)

// NumberAttribute returns what an ad says a job's number in: own means that it is Job.Own.
func NumberAttribute(own bool) string {
	if own {
		return attrNumber
	}
	return "ProcId"
}

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
		return refused("%d numbers for %d jobs: expected one for each", len(d.Numbers), d.Queue)
	case d.Numbers[0] < 0 || !slices.IsSorted(d.Numbers) || len(slices.Compact(slices.Clone(d.Numbers))) != d.Queue:
		return refused("the numbers of the jobs: expected them in order, each once")
	}
	return nil
}

// renumbered gives the procs of a checked submit description their own numbers: each proc's is in its ad, too.
func (d Description) renumbered(submit string) string {
	if len(d.Numbers) == 0 {
		return submit
	}
	var b strings.Builder
	lines, _ := strings.CutSuffix(submit, fmt.Sprintf("queue %d\n", d.Queue))
	b.WriteString(strings.ReplaceAll(lines, procNumber, "$("+ownNumber+")"))
	fmt.Fprintf(&b, "My.%s = $(%s)\nqueue %s from (\n", attrNumber, ownNumber, ownNumber)
	for _, n := range d.Numbers {
		fmt.Fprintln(&b, n)
	}
	b.WriteString(")\n")
	return b.String()
}
