package lifecycle

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// ReasonGivenUp is the reason, in the condition and the Event, when some output cannot be fetched.
const ReasonGivenUp = "GivenUp"

// ReasonIncomplete is the reason when some output lacks files.
const ReasonIncomplete = "Incomplete"

// awaitsOutput reports whether spec.completeAfterOutput keeps an HTCJob whose jobs have all succeeded from being called
// Succeeded.
func (s Situation) awaitsOutput() bool {
	return s.Job.Spec.CompleteAfterOutput && s.stage() == ended && s.Run.State == ledger.Submitted && s.succeeded() &&
		s.Unfetched
}

// outputCondition says how much of the newest attempt's output has been fetched. An attempt of an older htcd, whose
// output is not fetched, has no such condition.
func outputCondition(set SetCondition, s Situation, v View) {
	run, n := s.Run, s.Output
	if run != nil && run.State == ledger.Refused {
		NothingToFetch(set, s.Job.Status.Conditions)
	}
	if run == nil || run.OutputDir == "" || run.State != ledger.Submitted && run.State != ledger.Removed {
		return
	}
	say := func(is metav1.ConditionStatus, reason, message string) {
		set(v1alpha1.ConditionOutputFetched, is, reason, message)
	}
	switch fetched := n.Completed - n.GivenUp; {
	case n.Waiting > 0 && v.Unfetched != nil:
		say(metav1.ConditionFalse, v.Unfetched.Reason, v.Unfetched.Message)
	case s.Counts.Active > 0:
		say(metav1.ConditionFalse, "NotEnded", "not every job has ended; the output of each is fetched when it does")
	case n.Waiting > 0, !run.Confirmed:
		say(metav1.ConditionFalse, "Fetching", "the output of the jobs that ended is being fetched")
	case n.GivenUp > 0:
		say(
			metav1.ConditionFalse,
			ReasonGivenUp,
			fmt.Sprintf(
				"the output of %s is here, the output of %s could not be fetched",
				Plural(fetched, "job"),
				Plural(n.GivenUp, "other job"),
			),
		)
	case n.Incomplete > 0:
		lacks := n.Stderr[strings.LastIndex(n.Stderr, "\n")+1:]
		say(
			metav1.ConditionFalse,
			ReasonIncomplete,
			fmt.Sprintf(
				"the output of %s is here, %d incomplete; %s",
				Plural(fetched, "job"),
				n.Incomplete,
				strings.Trim(lacks, "()"),
			),
		)
	case run.Restored && n.Completed == 0:
		// The ledger was lost; the earlier condition still holds.
	case n.Completed == 0:
		say(metav1.ConditionTrue, "NothingToFetch", "no job ran to its end")
	default:
		say(metav1.ConditionTrue, "Fetched", fmt.Sprintf("the output of %s is here", Plural(fetched, "job")))
	}
}
