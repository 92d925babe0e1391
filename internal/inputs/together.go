package inputs

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Together makes one of inputs that were resolved each for itself, for the jobs of a DAG. Each has a directory of its
// own in schedd.InputsDir, by its name, in place of that for all procs; all jobs that get it are given the one copy.
func Together(ctx context.Context, parts map[string]*Ready, most int64) (*Ready, error) {
	all := &Ready{ctx: ctx}
	for name, part := range parts {
		all.own = append(all.own, name)
		all.fetches = append(all.fetches, part.fetches...)
		all.bytes += part.bytes
		for _, f := range part.files {
			f.path = path.Join(name, strings.TrimPrefix(f.path, shared+"/"))
			all.files = append(all.files, f)
		}
	}
	slices.Sort(all.own)
	slices.Sort(all.fetches)
	switch {
	case most > 0 && all.bytes > most:
		return nil, condor.Refusal(
			"the inputs of the steps have %d MiB together, more than the %d MiB that one workflow may bring here (--max-input): let the jobs fetch them by a URL or from a shared file system",
			(all.bytes+1<<20-1)>>20,
			most>>20,
		)
	case len(all.files) > maxFiles:
		return nil, condor.Refusal(
			"the inputs of the steps are %d files, more than the %d that one workflow may bring: pack them into one",
			len(all.files),
			maxFiles,
		)
	}
	return all, nil
}

// Only leaves out files of whose paths in the script's directory wanted reports false, and reports whether any is left.
func (r *Ready) Only(wanted func(name string) bool) bool {
	r.files = slices.DeleteFunc(r.files, func(f file) bool {
		out := !wanted(strings.TrimPrefix(f.path, shared+"/"))
		if out {
			r.bytes -= f.size
		}
		return out
	})
	return len(r.files) > 0
}

// dirs lists the directories in schedd.InputsDir.
func (r *Ready) dirs() []string {
	all := slices.Clone(r.own)
	if r.shared {
		all = append(all, shared)
	}
	for proc := range r.procs {
		all = append(all, strconv.Itoa(proc))
	}
	return all
}
