package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/items"
)

// Queue returns how many jobs the HTCJob asks for: one for each of spec.items, or for each combination of
// spec.parameters; spec.script.queue, else spec.queue, else 1. With spec.itemsFrom it is 0: the table says it, when the
// attempt begins.
func (j *HTCJob) Queue() int {
	switch s := j.Spec; {
	case len(s.Items) > 0:
		return len(s.Items)
	case s.ItemsFrom != nil:
		return 0
	case len(s.Parameters) > 0:
		return items.Count(s.Parameters)
	case s.Script.Queue != nil:
		return int(*s.Script.Queue)
	case s.Queue != nil:
		return int(*s.Queue)
	default:
		return 1
	}
}

// Jobs returns how many jobs the HTCJob asks for, or with spec.itemsFrom how many the status shows; at least 1.
func (j *HTCJob) Jobs() int {
	if n := j.Queue(); n > 0 {
		return n
	}
	return max(1, listed(j.Status.JobID), int(j.Status.Active+j.Status.Succeeded+j.Status.Failed))
}

// listed returns how many jobs JobIDs has listed.
func listed(ids []string) int {
	if len(ids) == 0 {
		return 0
	}
	_, number, _ := strings.Cut(ids[len(ids)-1], ".")
	last, err := strconv.Atoi(number[strings.Index(number, "-")+1:])
	if err != nil {
		return 0
	}
	return last + 1
}

// Brings reports whether htcd itself brings any of the inputs; the execute nodes fetch the others.
func (s HTCJobSpec) Brings() bool {
	return slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.URL == "" })
}

// BatchName returns the name condor_q shows: spec.name, else metadata.name.
func (j *HTCJob) BatchName() string {
	if j.Spec.Name != "" {
		return j.Spec.Name
	}
	return j.Name
}

// Abandoned says whether an administrator lets go of the jobs in HTCondor.
func (j *HTCJob) Abandoned() bool { return j.Annotations[AbandonAnnotation] == "true" }

// Abandoned is that of an HTCJob.
func (w *HTCWorkflow) Abandoned() bool { return w.Annotations[AbandonAnnotation] == "true" }

// Sequences returns how many sequences the HTCWorkflow asks for. With itemsFrom it is 0: the table says it, when the
// attempt begins.
func (w *HTCWorkflow) Sequences() int {
	switch s := w.Spec.Sequences; {
	case s == nil:
		return 1
	case len(s.Items) > 0:
		return len(s.Items)
	case s.ItemsFrom != nil:
		return 0
	case s.Count != nil:
		return int(*s.Count)
	default:
		return 1
	}
}

// SequenceName is the variable jobid of a sequence's jobs: the prefix and the number.
func (s HTCWorkflowSpec) SequenceName(number int) string {
	prefix := "job_"
	if s.Sequences != nil && s.Sequences.Prefix != "" {
		prefix = s.Sequences.Prefix
	}
	return prefix + strconv.Itoa(number)
}

// JobIDs returns what status.jobid says of a cluster with so many procs: each id, or, of more than MaxListedJobs, the
// first ListedOfMany and one range for the rest.
func JobIDs(cluster, procs int) []string {
	listed := procs
	if procs > MaxListedJobs {
		listed = ListedOfMany
	}
	ids := make([]string, 0, listed+1)
	for proc := range listed {
		ids = append(ids, fmt.Sprintf("%d.%d", cluster, proc))
	}
	if procs > listed {
		ids = append(ids, fmt.Sprintf("%d.%d-%d", cluster, listed, procs-1))
	}
	return ids
}
