package v1alpha1

import "fmt"

// Queue returns how many jobs the HTCJob asks for: spec.script.queue, else
// spec.queue, else 1. The CRD refuses two different numbers.
func (j *HTCJob) Queue() int {
	switch {
	case j.Spec.Script.Queue != nil:
		return int(*j.Spec.Script.Queue)
	case j.Spec.Queue != nil:
		return int(*j.Spec.Queue)
	default:
		return 1
	}
}

// BatchName returns the name condor_q shows: spec.name, else metadata.name.
func (j *HTCJob) BatchName() string {
	if j.Spec.Name != "" {
		return j.Spec.Name
	}
	return j.Name
}

// Abandoned says whether an administrator lets go of the jobs in HTCondor.
func (j *HTCJob) Abandoned() bool {
	return j.Annotations[AbandonAnnotation] == "true"
}

// JobIDs returns what status.jobid says of a cluster with so many procs: the
// first MaxListedJobs ids, then one range for the rest.
func JobIDs(cluster, procs int) []string {
	listed := min(procs, MaxListedJobs)
	ids := make([]string, 0, listed+1)
	for proc := range listed {
		ids = append(ids, fmt.Sprintf("%d.%d", cluster, proc))
	}
	switch rest := procs - listed; {
	case rest == 1:
		ids = append(ids, fmt.Sprintf("%d.%d", cluster, listed))
	case rest > 1:
		ids = append(ids, fmt.Sprintf("%d.%d-%d", cluster, listed, procs-1))
	}
	return ids
}
