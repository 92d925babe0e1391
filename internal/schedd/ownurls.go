package schedd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/items"
)

// ownURLs is the variable of the submit description that lists, for each proc, its script and the URLs that it alone gets. With the
// script there is no row without a value, which HTCondor 23 would take from the row before.
const ownURLs = "HTCJobURLs"

// maxOwnURLs bounds the lists of all procs together, in bytes: condor_submit reads them from the description.
const maxOwnURLs = 32 << 20

// varying lists the inputs from URLs that differ from proc to proc.
func (d Description) varying() []Input {
	return slices.DeleteFunc(slices.Clone(d.Inputs), func(in Input) bool { return in.URL == "" || !in.OfProc })
}

// ownInput is what a proc gets of a varying input; without a URL it gets none.
func (d Description) ownInput(in Input, proc int) (Input, error) {
	item := ""
	if proc < len(d.Items) {
		item = d.Items[proc]
	}
	url, err := items.Fill(in.URL, d.number(proc), item)
	if err != nil {
		return in, refused("spec.inputs: %s: url: %w", in.Name, err)
	}
	in.URL = url
	return in, nil
}

// checkOwnURLs does what checkInputURLs does for the URLs of single procs, beside those of all, which have this size.
func (d Description) checkOwnURLs(landed map[string]string, size int) error {
	varying, all := d.varying(), 0
	if len(varying) == 0 {
		return nil
	}
	for proc := range d.Queue {
		here, own := maps.Clone(landed), size
		for _, in := range varying {
			in, err := d.ownInput(in, proc)
			if err != nil {
				return err
			}
			if in.URL == "" {
				continue
			}
			if err := d.checkInputURL(in, here); err != nil {
				return refused("job %d: %w", d.number(proc), err)
			}
			own += len(in.URL) + 1
		}
		if all += own; own > maxURLs || all > maxOwnURLs {
			return refused("spec.inputs: expected URLs of at most 8 KiB for each job, and 32 MiB for all, found %d and %d bytes: let the script fetch what a list names", own, all)
		}
	}
	return nil
}

// ownList is what the variable has for a proc. The URLs have been checked.
func (d Description) ownList(proc int) string {
	list := fileScript
	for _, in := range d.varying() {
		if in, err := d.ownInput(in, proc); err == nil && in.URL != "" {
			list += "," + in.URL
		}
	}
	return list
}

// ownMoves returns the wrapper's function that adds what HTCondor puts under other names for its proc alone to what it does for all.
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
	urls := d.sameURLs()
	for _, in := range d.varying() {
		for proc := range d.Queue {
			if in, err := d.ownInput(in, proc); err == nil && in.URL != "" {
				urls = append(urls, in.URL)
			}
		}
	}
	return urls
}
