package push

import (
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// procPlace stands for a proc's number in a reference.
const procPlace = "{proc}"

// Check refuses references to which nothing can be pushed, and those to which several procs or outputs would be. kept
// says whether output is kept at all.
func Check(allowed artifact.Registries, kept bool, to []ledger.Destination, procs int) error {
	seen := map[string]bool{}
	for _, d := range to {
		if d.Artifact == "" {
			continue
		}
		where := "spec.outputs: " + d.Path
		if d.Path == "" { // all that a workflow's step has brought back
			where = "push"
		}
		err := allowed.CheckTarget(of(d.Artifact, procs-1))
		switch {
		case !kept:
			return condor.Refusal(
				"%s: this htcd keeps no output of jobs, so there is nothing that it could push",
				where,
			)
		case d.URL != "":
			return condor.Refusal("%s: it goes to a url or to an artifact, not to both", where)
		case err != nil:
			return condor.Refusal("%s: %w", where, err)
		case procs > 1 && !strings.Contains(d.Artifact, procPlace):
			return condor.Refusal(
				"%s: artifact %q: expected {proc} in it: each of %d jobs would replace the files of the others",
				where,
				d.Artifact,
				procs,
			)
		case seen[d.Artifact]:
			return condor.Refusal("%s: artifact %q: another output has the same", where, d.Artifact)
		}
		seen[d.Artifact] = true
	}
	return nil
}

// of returns the reference for one proc.
func of(reference string, proc int) string {
	return strings.ReplaceAll(reference, procPlace, strconv.Itoa(proc))
}
