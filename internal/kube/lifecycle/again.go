package lifecycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

// Choice is which jobs of an HTCJob its next attempt sends. The others keep their ends and their output.
type Choice int

// The choices.
const (
	Everything  Choice = iota
	Unended            // those that had not ended when the HTCJob was suspended
	Unsucceeded        // those that have failed
	Listed             // those that the annotation lists
)

// ReasonOutputAwaited is the reason while the next attempt waits for the output of the jobs that it does not send.
const ReasonOutputAwaited = "OutputAwaited"

// Unkept are the reasons with which a job has not ended by itself or by anybody's will but was taken back by htcd.
var Unkept = []string{crosscheck.StopSuspended, crosscheck.ReasonStagingFailed}

// Again returns what the attempt after the newest one sends, and what of it the annotation lists. If the annotations
// ask for what cannot be, why says so.
func (s Situation) Again() (choice Choice, listed procset.Set, why string) {
	run := s.Run
	if run == nil || edited(s.Job, run) || run.SpecHash == "" {
		return Everything, listed, ""
	}
	rest := Everything // after a loss of the ledger nobody knows which jobs had ended
	if run.State == ledger.Removed && !run.Restored {
		rest = Unended
	}
	words := s.Job.RerunProcs()
	switch asked := s.asksAgain(); {
	case !asked:
		return rest, listed, ""
	case words == "":
		return Everything, listed, ""
	case run.Restored && s.Counts.Failed > v1alpha1.MaxFailures:
		return rest, listed, "which of its jobs have failed was lost with the ledger: run all of them again, without " + v1alpha1.RerunProcsAnnotation
	case words == "failed" && s.Counts.Failed == 0 && run.State == ledger.Submitted:
		return rest, listed, "no job of it has failed"
	case words == "failed":
		return Unsucceeded, listed, ""
	}
	listed, err := procset.Parse(words, run.All())
	if err != nil {
		return rest, listed, err.Error() + "; or write failed"
	}
	return Listed, listed, ""
}

// asksAgain reports whether the annotation asks for an attempt that has not been.
func (s Situation) asksAgain() bool {
	again := s.Job.Rerun()
	return again != "" && again != s.Run.Rerun
}

// refusesAgain returns why the annotations ask for nothing that can be done, empty if they do not.
func (s Situation) refusesAgain() string {
	if s.Run == nil || !s.asksAgain() || s.stage() != ended && s.stage() != refused && s.stage() != withdrawn {
		return ""
	}
	_, _, why := s.Again()
	return why
}

// Numbers returns the jobs to send, empty if that is all of them: those that are listed, and those that are not among
// the kept ones, which have ended.
func Numbers(listed procset.Set, kept []int, jobs int) procset.Set {
	var send []int
	next := 0
	for _, n := range append(kept, jobs) {
		for ; next < n; next++ {
			send = append(send, next)
		}
		if n < jobs && listed.Has(n) {
			send = append(send, n)
		}
		next = n + 1
	}
	if len(send) == jobs {
		return procset.Set{}
	}
	return procset.Of(send)
}

// maxPartial bounds what a status says about the numbers of an attempt that sends only some jobs.
const maxPartial = 16 << 10

// cutOff ends a list of numbers that is longer.
const cutOff = ",…"

// partial says which jobs a run sends, nil if it is all of them.
func partial(run *ledger.Run) *v1alpha1.Partial {
	if run.Sent == "" {
		return nil
	}
	procs := run.Sent
	if len(procs) > maxPartial {
		procs = procs[:maxPartial] + cutOff
	}
	return &v1alpha1.Partial{
		Procs:     procs,
		Succeeded: int32(run.Jobs - run.Procs - run.KeptFailed),
		Failed:    int32(run.KeptFailed),
	} // #nosec G115 -- 100,000 at most
}

// keeps says how many jobs a run does not send.
func keeps(run *ledger.Run) string {
	if run.Sent == "" {
		return ""
	}
	return fmt.Sprintf("; %d others do not run again", run.Jobs-run.Procs)
}

// rerunCondition says why the annotations cannot be followed. It is absent where they can be.
func rerunCondition(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation) {
	why := s.refusesAgain()
	if why == "" {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionRerunRefused)
		return
	}
	set(v1alpha1.ConditionRerunRefused, metav1.ConditionTrue, "CannotRerun", s.Job.RerunRefusal(why))
}

// refusalNews tells once that the annotations cannot be followed of which this condition is.
func refusalNews(before, after v1alpha1.HTCJobStatus, condition string) []Event {
	was := meta.FindStatusCondition(before.Conditions, condition)
	is := meta.FindStatusCondition(after.Conditions, condition)
	if is == nil || was != nil && was.Message == is.Message {
		return nil
	}
	return []Event{{true, condition, is.Message}}
}
