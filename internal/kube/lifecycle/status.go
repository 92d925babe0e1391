package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/matching"
	"htc.cern.ch/htcd/internal/target/pool"
)

// View is what the status of an object of either kind needs in addition to the situation: what blocks it, and whether
// the schedd answers.
type View struct {
	Blocker   *Blocker                  // why it makes no progress; nil if nothing blocks it
	Secret    backend.Proof             // of the Secret it is sent with
	Fresh     *jobcredentials.Freshness // about the credentials of the jobs; nil: not known
	Match     *matching.Verdict         // about slots for jobs that wait; nil: not known
	Unfetched *Blocker                  // why output is not fetched
	Unpushed  *Blocker                  // why artifacts are not pushed
	Logs      LogsView                  // of an HTCJob
	Backend   backend.Reachability
	Now       time.Time
}

// Blocker is why an object, or the fetching of its output, makes no progress at the moment.
type Blocker struct {
	Condition string // the condition it makes False
	Reason    string
	Message   string
}

// BlockedBy reports whether there is a blocker that this condition shows.
func (v View) BlockedBy(condition string) bool {
	return v.Blocker != nil && v.Blocker.Condition == condition
}

// NewStatus returns the whole status of an HTCJob. It is pure; conditions keep the time of their last change.
func NewStatus(s Situation, v View) v1alpha1.HTCJobStatus {
	status := v1alpha1.HTCJobStatus{
		Phase:              v1alpha1.PhasePending,
		ObservedGeneration: s.Job.Generation,
		Attempt:            s.Job.Status.Attempt,
		Conditions:         slices.Clone(s.Job.Status.Conditions),
	}
	if s.Run != nil {
		describeRun(&status, s)
	}
	status.Phase = phase(s)
	forgotten := s.Run == nil && s.Job.Status.Attempt > 0
	kept := forgotten || s.Unasked || deletionKeeps(s)
	if kept {
		status = *s.Job.Status.DeepCopy()
	}
	set := Sets(&status.Conditions, &status.ObservedGeneration, v.Now)
	// If the ledger has lost the run, its previous status stays until HTCondor has been asked; a deletion keeps it,
	// too.
	if !kept {
		submittedCondition(set, s, v)
		inputsCondition(set, &status, s, v)
		FreshCondition(set, &status.Conditions, !status.Phase.Terminal() && status.Active > 0, v.Fresh)
		reason, message := phaseNews(s, status.Phase)
		rests := status.Phase == v1alpha1.PhaseSuspended && s.stage() != stopping
		EndConditions(set, &status.Conditions, status.Phase, reason, message, "not every job has ended", rests)
		earlyConditions(set, &status, s)
		heldCondition(set, &status, s)
		tooLong := func(f v1alpha1.Failure) bool { return f.Reason == condor.ReasonIdleTooLong }
		waits := status.Idle > 0 || slices.ContainsFunc(status.Failures, tooLong)
		MatchableCondition(set, &status.Conditions, waits, v.Match)
		suspendedCondition(set, &status, s)
		rerunCondition(set, &status, s)
		cancelCondition(set, &status, s)
		outputCondition(set, s, v)
		pushedCondition(set, &status, s, v)
		logsCondition(set, &status, s, v.Logs)
		flatFields(&status, s)
	}
	sent := s.Run != nil && s.Run.State == ledger.Submitted
	if !sent {
		v.Backend.Missing = 0
	}
	v.Dependencies(set, status.Conditions, status.Phase.Terminal(), s.Job.DeletionTimestamp != nil, sent)
	far := Far(status.Reason, status.Message)
	if !kept {
		_, far = phaseNews(s, status.Phase)
	}
	status.Reason, status.Message = Summary(status.Phase, status.Conditions, far)
	return status
}

// deletionKeeps reports whether the status from before the deletion stays: the deletion removes the jobs from HTCondor,
// which is not a failure and says nothing about how those ended whose callbacks have arrived.
func deletionKeeps(s Situation) bool {
	ended := s.Job.Status.Phase.Terminal() && s.Run != nil && s.Run.Attempt == int(s.Job.Status.Attempt)
	return s.Job.DeletionTimestamp != nil && (ended || s.Run != nil && s.Run.State == ledger.Submitted)
}

// describeRun fills in everything that comes from the newest run.
func describeRun(status *v1alpha1.HTCJobStatus, s Situation) {
	run, back := s.Run, s.withheld()
	status.Attempt, status.SpecHash, status.Rerun = int32(run.Attempt), run.SpecHash, run.Rerun
	status.InputsDigest, status.ItemsDigest = run.InputsDigest, run.ItemsDigest
	status.LastChecked, status.Effective = TimeOrNil(run.Checked), s.effective()
	// A client that waits for a condition of the changed spec must not see the end of the previous attempt instead.
	if s.changed() && !back {
		status.ObservedGeneration = max(run.Generation, s.Job.Status.ObservedGeneration)
		if edited(s.Job, run) { // after a restore of etcd both may be as high or higher
			status.ObservedGeneration = min(status.ObservedGeneration, s.Job.Generation-1)
		}
	}
	status.Partial = partial(run)
	suspended := run.State == ledger.Removed && run.Stop == crosscheck.StopSuspended && run.Cluster > 0
	switch {
	case run.State == ledger.Intent:
		status.Active, status.Succeeded, status.Failed =
			int32(run.Procs), int32(s.Counts.Succeeded), int32(s.Counts.Failed)
	case back && !suspended: // this attempt has ended; the next one is held back
	case run.State == ledger.Refused:
		status.Succeeded, status.Failed = int32(s.Counts.Succeeded), int32(run.Procs+s.Counts.Failed)
		status.CompletionTime = TimeOrNil(run.Ended)
	case run.State == ledger.Submitted || suspended && back:
		n := s.Counts
		status.Active, status.Succeeded, status.Failed = int32(n.Active), int32(n.Succeeded), int32(n.Failed)
		status.Idle, status.Running, status.Held = int32(n.Idle), int32(n.Running), int32(n.Held)
		status.Waiting, status.Parallelism = int32(n.Waiting), int32(run.Factory)
		status.JobID = v1alpha1.JobIDs(run.Cluster, run.Procs)
		status.ClusterID, status.Schedd = int32(run.Cluster), run.Schedd
		if Apart(run) != "" {
			status.Failed -= int32(s.Stopped)
		}
		status.Stopped = int32(s.stopped())
		status.User = run.Account
		if !suspended {
			status.StartTime, status.StartedAt = TimeOrNil(run.Submitted), TimeOrNil(run.Started)
			status.Duration, status.Usage = ran(s), used(s)
		}
		if !suspended && !(s.stage() == stopping && s.Stopped > 0) {
			status.CompletionTime = TimeOrNil(run.Ended)
		}
		status.Failures = describeFailures(s)
		status.Outputs = describeOutputs(s)
	}
}

func describeFailures(s Situation) []v1alpha1.Failure {
	var failures []v1alpha1.Failure
	for _, p := range s.Failures {
		failures = append(failures, v1alpha1.Failure{
			JobID:    p.JobID(),
			Proc:     new(int32(p.Proc)),
			Item:     itemOf(s, p),
			ExitCode: Int32OrNil(p.ExitCode),
			Signal:   Int32OrNil(p.Signal),
			Reason:   p.Reason,
			Message:  Shorten(p.Message, MaxNote),
			Stderr:   p.Stderr,
		})
	}
	return failures
}

// phase sums up the situation in one word, by the first rule that fits.
func phase(s Situation) v1alpha1.Phase {
	run, n := s.Run, s.Counts
	switch {
	case s.withheld():
		return v1alpha1.PhaseSuspended
	case run == nil:
		return v1alpha1.PhasePending
	case run.State == ledger.Refused:
		return v1alpha1.PhaseFailed
	case run.State != ledger.Submitted:
		return v1alpha1.PhaseSubmitting
	case n.Running > 0:
		return v1alpha1.PhaseRunning
	case n.Held > 0:
		return v1alpha1.PhaseHeld
	case n.Active > 0:
		return v1alpha1.PhaseIdle
	case s.stage() == stopping && run.Stop == crosscheck.StopSuspended && s.Stopped > 0:
		return v1alpha1.PhaseSuspended
	case s.awaitsOutput():
		return v1alpha1.PhaseRunning
	case s.succeeded():
		return v1alpha1.PhaseSucceeded
	case run.Stop != crosscheck.StopFailures && allRemoved(s):
		return v1alpha1.PhaseRemoved
	}
	return v1alpha1.PhaseFailed
}

// succeeded reports whether an attempt whose jobs have all ended has succeeded.
func (s Situation) succeeded() bool { return s.Counts.Failed == 0 || s.enough() }

// allRemoved reports whether all listed failures are removals.
func allRemoved(s Situation) bool {
	for _, p := range s.Failures {
		if p.Reason != crosscheck.ReasonRemoved {
			return false
		}
	}
	return len(s.Failures) > 0
}

func submittedCondition(set SetCondition, s Situation, v View) {
	switch run := s.Run; {
	// The previous run has ended, and the changed spec waits.
	case v.Blocker != nil && (admission.InLine(v.Blocker.Reason) || pool.Waits(v.Blocker.Reason) ||
		v.Blocker.Reason == ReasonOutputAwaited),
		v.BlockedBy(v1alpha1.ConditionInputsReady),
		v.BlockedBy(v1alpha1.ConditionSubmitted) && Plan(s).Action == Submit:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
	case s.withheld():
		reason, message := "Suspended", "spec.suspend is true"
		if s.unadmitted() {
			reason, message = s.Quota.Reason, s.Quota.Message
		}
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, reason, message)
	case run != nil && run.State == ledger.Submitted:
		set(
			v1alpha1.ConditionSubmitted,
			metav1.ConditionTrue,
			"Submitted",
			fmt.Sprintf(
				"cluster %d with %s is at schedd %s%s",
				run.Cluster,
				Plural(run.Procs, "job"),
				run.Schedd,
				keeps(run),
			),
		)
	case run != nil && run.State == ledger.Refused:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, run.Reason, run.Message)
	case v.Blocker != nil:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
	case Plan(s).Action == Recover:
		set(
			v1alpha1.ConditionSubmitted,
			metav1.ConditionUnknown,
			"AskingSchedd",
			"the schedd is asked whether it has this attempt already",
		)
	default:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, "Waiting", "waiting to be submitted")
	}
}

func suspendedCondition(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation) {
	is, reason, message := metav1.ConditionFalse, "NotSuspended", "spec.suspend is false"
	switch run := s.Run; {
	case s.withheld():
		is = metav1.ConditionTrue
		reason, message = phaseNews(s, v1alpha1.PhaseSuspended)
	case s.stage() == stopping && run.Stop == crosscheck.StopSuspended:
		reason, message = ReasonStopping, "the jobs are being removed from HTCondor"
	case s.Job.Spec.Suspend && status.Phase.Terminal():
		reason, message = "Ended", "the jobs had ended before spec.suspend could stop them"
	case s.suspends():
		reason, message = ReasonStopping, "the jobs are about to be removed from HTCondor"
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSuspended) == nil:
		return
	}
	set(v1alpha1.ConditionSuspended, is, reason, message)
}

// HeldMessage says how many are held, why one of them is, and what to do.
func HeldMessage(many, name string, one ledger.Proc, kind string) string {
	message := fmt.Sprintf(
		"%s held; %s: %s. Set spec.suspend to true, mend the cause, and set it to false, which sends those again that have not ended; "+
			"or delete the %s. Who has a login at the schedd can condor_release it instead",
		many,
		name,
		one.Message,
		kind,
	)
	if one.Stderr != "" {
		message += ". The end of its standard error:\n" + one.Stderr
	}
	return message
}

// Paused says how many wait for a factory that makes none of them, why, and what to do.
func Paused(many string, run ledger.Run) (reason, message string) {
	if strings.HasPrefix(run.Paused(), schedd.PoolHold) {
		return crosscheck.ReasonPoolSuspended, fmt.Sprintf(
			"HTCondor makes none of the %s: HTCPool %s is suspended; it goes on once that is Online or Draining again",
			many,
			run.Pool,
		)
	}
	return ledger.FactoryPaused, fmt.Sprintf(
		"HTCondor makes none of the %s: %s. Who has a login at the schedd can condor_release that cluster once the cause is mended",
		many,
		run.Paused(),
	)
}

func heldCondition(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation) {
	switch {
	case s.Held != nil && s.Held.Reason == crosscheck.ReasonPoolSuspended:
		set(v1alpha1.ConditionHeld, metav1.ConditionTrue, s.Held.Reason, heldByPool(s))
	case s.Held != nil:
		set(v1alpha1.ConditionHeld, metav1.ConditionTrue, "Held",
			HeldMessage(Plural(s.Counts.Held, "job"), nameOf(s, *s.Held), *s.Held, "HTCJob"))
	case s.Run != nil && s.Run.Paused() != "" && s.Counts.Waiting > 0:
		reason, message := Paused(Agree(s.Counts.Waiting, "job", "that waits", "that wait"), *s.Run)
		set(v1alpha1.ConditionHeld, metav1.ConditionTrue, reason, message)
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHeld) != nil:
		set(v1alpha1.ConditionHeld, metav1.ConditionFalse, "NotHeld", "no job is held")
	}
}

// seconds truncates a time to the API's precision.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

// TimeOrNil returns a time as the API has it, nil for the zero time.
func TimeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(seconds(t).Local()))
}

// Int32OrNil returns a number as the API has it.
func Int32OrNil(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}
