package lifecycle

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

// Successes is how many of the jobs that a rule of spec.successPolicy is about have succeeded.
type Successes struct {
	All    int
	Before int // of these, those that do not run again in the newest attempt
}

// Indexes returns the jobs that a rule of spec.successPolicy is about, empty for all.
func Indexes(rule v1alpha1.SuccessRule) procset.Set {
	if rule.SucceededIndexes == "" {
		return procset.Set{}
	}
	set, _ := procset.Parse(
		rule.SucceededIndexes,
		math.MaxInt32,
	) // the CRD has checked its form, and the submission the rest
	return set
}

// needed returns how many successes a rule asks for.
func needed(rule v1alpha1.SuccessRule) int {
	if rule.SucceededCount != nil {
		return int(*rule.SucceededCount)
	}
	return Indexes(rule).Len()
}

// met returns the first rule of spec.successPolicy for which there are enough successes, as of returns them; -1 if
// there is none.
func (s Situation) met(of func(Successes) int) int {
	p := s.Job.Spec.SuccessPolicy
	if p == nil || len(s.Successes) != len(p.Rules) {
		return -1
	}
	for i, rule := range p.Rules {
		if of(s.Successes[i]) >= needed(rule) {
			return i
		}
	}
	return -1
}

func all(n Successes) int    { return n.All }
func before(n Successes) int { return n.Before }

// endsEarly returns why an active attempt ends before all its jobs have: a crosscheck's stop, "" if it does not, and
// the same for the user. Failures come first, as for a batch/v1 Job. An attempt that had enough successes when it
// began was asked for nevertheless.
func (s Situation) endsEarly() (stop, message string) {
	if most := s.Job.Spec.MaxFailures; most != nil {
		failed := s.Counts.Failed - s.Run.KeptFailed
		if limit, err := intstr.GetScaledValueFromIntOrPercent(most, s.Run.Procs, true); err == nil &&
			failed >= max(limit, 1) {
			return crosscheck.StopFailures, fmt.Sprintf(
				"%d of %s failed (spec.maxFailures: %s)",
				failed,
				Plural(s.Run.Procs, "job"),
				most,
			)
		}
	}
	if i := s.met(all); i >= 0 && s.met(before) < 0 && !edited(s.Job, s.Run) {
		return crosscheck.StopSuccess, fmt.Sprintf(
			"%s succeeded, which is enough (spec.successPolicy.rules[%d])",
			Plural(s.Successes[i].All, "job"),
			i,
		)
	}
	return "", ""
}

// enough reports whether the successes of an attempt whose jobs have all ended suffice though others have failed. What
// was once called a success stays one while another spec waits to be sent, and when the ledger has lost which jobs
// have succeeded.
func (s Situation) enough() bool {
	switch run := s.Run; {
	case s.Job.Spec.SuccessPolicy == nil && run.Stop != crosscheck.StopSuccess, run.Stop == crosscheck.StopFailures,
		run.Stop == crosscheck.StopDeadline && s.Stopped > 0:
		return false
	case (edited(s.Job, run) || run.Restored) && int(s.Job.Status.Attempt) == run.Attempt &&
		s.Job.Status.Phase == v1alpha1.PhaseSucceeded:
		return true
	}
	return s.met(all) >= 0
}

// apart are the stops whose jobs have neither succeeded nor failed.
var apart = []string{crosscheck.StopSuspended, crosscheck.StopFailures, crosscheck.StopSuccess}

// Apart returns the reason of the jobs of a run that are no failures, "" if there are none.
func Apart(run *ledger.Run) string {
	if slices.Contains(apart, run.Stop) {
		return run.Stop
	}
	return ""
}

// stopped returns how many jobs were removed because of spec.maxFailures or spec.successPolicy.
func (s Situation) stopped() int {
	if s.Run.Stop == crosscheck.StopFailures || s.Run.Stop == crosscheck.StopSuccess {
		return s.Stopped
	}
	return 0
}

// SparesRunning reports whether the jobs that run go on while an attempt is ended.
func (s Situation) SparesRunning(stop string) bool {
	return stop == crosscheck.StopFailures && s.Job.Spec.OnMaxFailures != v1alpha1.RemoveAll && !s.suspends() &&
		!overdue(s)
}

// earlyConditions say that an attempt has ended, or is to end, before all its jobs have.
func earlyConditions(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation) {
	for kind, stop := range earlyStops {
		if s.Run == nil || s.Run.Stop != stop {
			meta.RemoveStatusCondition(&status.Conditions, kind)
			continue
		}
		set(
			kind,
			metav1.ConditionTrue,
			stop,
			fmt.Sprintf("%s: %s removed", s.Run.Message, wasOrWere(s.stopped(), "other job")),
		)
	}
}

var earlyStops = map[string]string{
	v1alpha1.ConditionFailureTarget:   crosscheck.StopFailures,
	v1alpha1.ConditionSuccessCriteria: crosscheck.StopSuccess,
}

// EarlyStop returns the stop that a status tells of, and its message; "" if it tells of none.
func EarlyStop(status v1alpha1.HTCJobStatus) (stop, message string) {
	for kind, stop := range earlyStops {
		if said := meta.FindStatusCondition(status.Conditions, kind); said != nil {
			return stop, crosscheck.StopMessage(stop)
		}
	}
	return "", ""
}
