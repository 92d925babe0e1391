package submit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// ownURLs is the variable of the submit description that lists, for each proc, its script and the URLs that it alone
// gets. With the script there is no row without a value, which HTCondor 23 would take from the row before.
const ownURLs = "HTCJobURLs"

// maxOwnURLs bounds the lists of all procs together, in bytes: condor_submit reads them from the description.
const maxOwnURLs = 32 << 20

// varying lists the inputs from URLs that differ from proc to proc.
func (d Description) varying() []Input {
	return slices.DeleteFunc(slices.Clone(d.Inputs), func(in Input) bool { return in.URL == "" || !in.OfProc })
}

// ownInputs returns what a proc gets of the varying inputs; of one without a URL it gets nothing.
func (d Description) ownInputs(varying []Input, proc int) (own []Input, err error) {
	item := ""
	if proc < len(d.Items) {
		item = d.Items[proc]
	}
	for _, in := range varying {
		if in.URL, err = items.Fill(in.URL, d.number(proc), item); err != nil {
			return nil, condor.Refusal("spec.inputs: %s: url: %w", in.Name, err)
		}
		if in.URL != "" {
			own = append(own, in)
		}
	}
	return own, nil
}

// checkOwnURLs does what checkInputURLs does for the URLs of single procs, beside those of all, which have this size.
func (d Description) checkOwnURLs(landed map[string]string, size int) error {
	varying, all := d.varying(), 0
	if len(varying) == 0 {
		return nil
	}
	for proc := range d.Queue {
		own, err := d.ownInputs(varying, proc)
		if err != nil {
			return err
		}
		here, bytes := maps.Clone(landed), size
		for _, in := range own {
			if err := d.checkInputURL(in, here); err != nil {
				return condor.Refusal("job %d: %w", d.number(proc), err)
			}
			bytes += len(in.URL) + 1
		}
		if all += bytes; bytes > maxURLs || all > maxOwnURLs {
			return condor.Refusal(
				"spec.inputs: expected URLs of at most 8 KiB for each job, and 32 MiB for all, found %d and %d bytes: "+
					"let the script fetch what a list names",
				bytes,
				all,
			)
		}
	}
	return nil
}

// ownURLsOf lists, for each proc, the URLs that it alone gets, which have been checked; nothing if no proc gets any.
func (d Description) ownURLsOf() [][]string {
	varying := d.varying()
	if len(varying) == 0 {
		return nil
	}
	all := make([][]string, d.Queue)
	for proc := range all {
		own, _ := d.ownInputs(varying, proc)
		for _, in := range own {
			all[proc] = append(all[proc], in.URL)
		}
	}
	return all
}

// ownMoves returns the wrapper's function that adds what HTCondor puts under other names for its proc alone to what it
// does for all.
func (d Description) ownMoves() string {
	var b strings.Builder
	for _, in := range d.varying() {
		fmt.Fprintf(&b, "\tlanded %s %s\n", in.Name, shellWord(in.URL))
	}
	if b.Len() == 0 {
		return ""
	}
	return "own_moves() {\n" + b.String() + "}\n"
}

// inputURLs lists all URLs among the inputs, those of single procs, too.
func (d Description) inputURLs() []string {
	return append(d.sameURLs(), slices.Concat(d.ownURLsOf()...)...)
}
