package inputs

import (
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// maxFollowed bounds how many HTCJobs a search for a cycle looks at. In a larger graph a cycle only waits.
const maxFollowed = 10_000

// self is the name by which a jobRef would mean the object itself. Names of workflows are none of HTCJobs.
func self(job *v1alpha1.HTCJob) string {
	if job.Kind == v1alpha1.WorkflowKind {
		return ""
	}
	return job.Name
}

// acyclic refuses an HTCJob that waits for itself, by way of others that have not ended, or not succeeded, either.
func acyclic(job *v1alpha1.HTCJob, get func(name string) *v1alpha1.HTCJob) error {
	own := self(job)
	from := map[string]string{}
	queue := []string{own}
	for len(queue) > 0 && len(from) < maxFollowed {
		name := queue[0]
		queue = queue[1:]
		next := job
		if name != own {
			next = get(name)
		}
		if next == nil || next != job && !Judge(name, next).waited() {
			continue
		}
		for _, source := range Sources(next.Spec) {
			if source == own {
				return condor.Refusal(
					"spec.inputs: a cycle of jobRefs, in which every HTCJob waits for another: %s",
					way(from, own, name),
				)
			}
			if _, seen := from[source]; !seen {
				from[source] = name
				queue = append(queue, source)
			}
		}
	}
	return nil
}

// way returns the names from first to last and back, "a -> b -> a".
func way(from map[string]string, first, last string) string {
	names := []string{first}
	for name := last; name != first; name = from[name] {
		names = append(names, name)
	}
	names = append(names, first)
	slices.Reverse(names)
	if len(names) > 10 {
		names = slices.Concat(names[:5], []string{"..."}, names[len(names)-4:])
	}
	return strings.Join(names, " -> ")
}
