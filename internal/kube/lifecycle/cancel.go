package lifecycle

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

// Cancels returns the jobs that an annotation wants removed from a run of this HTCJob, which may have ended. What is
// for an earlier attempt asks for nothing. If the annotation asks for what cannot be, why says so.
func Cancels(job *v1alpha1.HTCJob, run *ledger.Run) (procs procset.Set, why string) {
	words := job.CancelProcs()
	if words == "" || run == nil {
		return procs, ""
	}
	of, list, found := strings.Cut(words, "/")
	attempt, err := strconv.ParseUint(of, 10, 31)
	switch {
	case !found || err != nil:
		return procs, "expected the attempt and its jobs, such as " + strconv.Itoa(run.Attempt) + "/3,7-9"
	case int(attempt) < run.Attempt:
		return procs, ""
	case int(attempt) > run.Attempt:
		return procs, fmt.Sprintf("attempt %d has not begun: the newest is %d", attempt, run.Attempt)
	}
	procs, err = procset.Parse(list, run.All())
	if err != nil {
		return procset.Set{}, err.Error()
	}
	return procs, ""
}

// cancelCondition says why the annotation cannot be followed. It is absent where it can be.
func cancelCondition(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation) {
	_, why := Cancels(s.Job, s.Run)
	if why == "" {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionCancelRefused)
		return
	}
	set(
		v1alpha1.ConditionCancelRefused,
		metav1.ConditionTrue,
		"CannotCancel",
		fmt.Sprintf("cancel the jobs %.40q: %s", s.Job.CancelProcs(), why),
	)
}
