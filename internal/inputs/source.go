package inputs

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Stand says how far an HTCJob is whose output others need.
type Stand int

const (
	Absent     Stand = iota // there is none, or it is being deleted
	Unfinished              // it has not ended, or its output has not been fetched
	Succeeded               // its output is here, as far as it can be had
	Broken                  // it has failed; what its jobs that succeeded left is here
	Unkept                  // it has ended, and its output was not kept, as that of its next attempt will not be
)

// Source is an HTCJob whose output others need. It is comparable: two equal values mean that nothing has changed for
// them.
type Source struct {
	UID     string
	Stand   Stand
	Attempt int
	Procs   int
	Why     string // for people: why it is not Succeeded
}

// waited reports whether others wait for it to run, perhaps again.
func (s Source) waited() bool { return s.Stand == Unfinished || s.Stand == Broken }

// settled are the reasons for which OutputFetched stays False: what is missing then cannot be had.
var settled = map[string]bool{"GivenUp": true, "Incomplete": true}

// Judge returns what an HTCJob is as a source; nil is one that does not exist.
func Judge(name string, job *v1alpha1.HTCJob) Source {
	if job == nil {
		return Source{Why: fmt.Sprintf("there is no HTCJob %s in this namespace", name)}
	}
	s := Source{
		UID:     string(job.UID),
		Attempt: int(job.Status.Attempt),
		Procs:   int(job.Status.Succeeded + job.Status.Failed),
	}
	is := func(stand Stand, format string, args ...any) Source {
		s.Stand, s.Why = stand, "the HTCJob "+name+" "+fmt.Sprintf(format, args...)
		return s
	}
	fetched := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	switch {
	case job.DeletionTimestamp != nil:
		return is(Absent, "is being deleted")
	case !job.Status.Phase.Terminal():
		return is(Unfinished, "has not ended")
	case job.Status.ObservedGeneration < job.Generation || job.Rerun() != "" && job.Rerun() != job.Status.Rerun:
		return is(Unfinished, "has changed and is about to run again")
	case job.Status.ClusterID == 0:
		return is(Broken, "has failed without running: %s", failure(job))
	case fetched == nil:
		return is(Unkept, "has ended, but its output was not kept")
	case fetched.Status != metav1.ConditionTrue && !settled[fetched.Reason]:
		return is(Unfinished, "has ended, and its output is being fetched")
	case job.Status.Phase != v1alpha1.PhaseSucceeded:
		return is(Broken, "has failed: %s", failure(job))
	}
	return is(Succeeded, "has succeeded")
}

func failure(job *v1alpha1.HTCJob) string {
	if c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionFailed); c != nil {
		return fmt.Sprintf("%.500s", c.Message)
	}
	return string(job.Status.Phase)
}
