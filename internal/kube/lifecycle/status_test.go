package lifecycle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestTheReasonOfAStatusIsWhatKeepsItFromGettingOn(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	away := is(v1alpha1.ConditionBackendReachable, no, "Unreachable")
	for name, c := range map[string]struct {
		phase      v1alpha1.Phase
		conditions []metav1.Condition
		reason     string
	}{
		"one that waits":         {v1alpha1.PhasePending, []metav1.Condition{is(v1alpha1.ConditionSubmitted, no, "Waiting")}, "Waiting"},
		"one that is looked for": {v1alpha1.PhaseSubmitting, []metav1.Condition{is(v1alpha1.ConditionSubmitted, unknown, "AskingSchedd")}, "AskingSchedd"},
		"one without a ticket":   {v1alpha1.PhasePending, []metav1.Condition{is(v1alpha1.ConditionSubmitted, no, "BadPassword"), is(v1alpha1.ConditionCredentials, no, "BadPassword"), away}, "BadPassword"},
		"one without a schedd":   {v1alpha1.PhaseRunning, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), away}, "Unreachable"},
		"one without its inputs": {v1alpha1.PhaseRunning, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), is(v1alpha1.ConditionInputsReady, no, "SecretMissing")}, "SecretMissing"},
		"one that runs":          {v1alpha1.PhaseRunning, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), is(v1alpha1.ConditionSuspended, no, "NotSuspended")}, ""},
		"one on hold":            {v1alpha1.PhaseHeld, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), is(v1alpha1.ConditionHeld, yes, "Held")}, "Held"},
		"one that is suspended":  {v1alpha1.PhaseSuspended, []metav1.Condition{is(v1alpha1.ConditionSubmitted, no, "Suspended"), is(v1alpha1.ConditionSuspended, yes, "Suspended"), away}, "Suspended"},
		"one that is being so":   {v1alpha1.PhaseRunning, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), is(v1alpha1.ConditionSuspended, no, "Stopping")}, "Stopping"},
		"one that has failed":    {v1alpha1.PhaseFailed, []metav1.Condition{is(v1alpha1.ConditionStalled, yes, "ExitCode"), away}, "ExitCode"},
		"one that has succeeded": {v1alpha1.PhaseSucceeded, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), away}, ""},
	} {
		reason, _ := Summary(c.phase, c.conditions, "")
		require.Equal(t, c.reason, reason, name)
	}
}

func TestTheReasonThatAllFailuresShareIsTheHTCJobs(t *testing.T) {
	code := 1
	failed := func(reasons ...string) Situation {
		s := Situation{
			Job:    &v1alpha1.HTCJob{},
			Run:    &ledger.Run{State: ledger.Submitted},
			Counts: ledger.Counts{Failed: len(reasons)},
		}
		for _, reason := range reasons {
			p := ledger.Proc{Reason: reason}
			if reason == "ExitCode" || strings.HasSuffix(reason, ": 1") {
				p.ExitCode, p.Reason = &code, strings.TrimSuffix(reason, ": 1")
			}
			s.Failures = append(s.Failures, p)
		}
		return s
	}
	for name, c := range map[string]struct {
		s    Situation
		want string
	}{
		"one that waited too long":           {failed("IdleDeadlineExceeded"), "IdleDeadlineExceeded"},
		"all held for too long":              {failed("HeldDeadlineExceeded", "HeldDeadlineExceeded"), "HeldDeadlineExceeded"},
		"also with the script's return code": {failed("HeldDeadlineExceeded: 1", "HeldDeadlineExceeded"), "HeldDeadlineExceeded"},
		"a return code says no more":         {failed("ExitCode"), "Failed"},
		"different ones":                     {failed("Lost", "HeldDeadlineExceeded"), "Failed"},
		"some by themselves, some taken":     {failed("Removed", "ExitCode"), "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			reason, _ := phaseNews(c.s, v1alpha1.PhaseFailed)
			require.Equal(t, c.want, reason)
		})
	}
}

func TestTheConditionOfOutput(t *testing.T) {
	run := func(change func(*ledger.Run)) *ledger.Run {
		r := ledger.Run{State: ledger.Submitted, OutputDir: "/out", Confirmed: true}
		change(&r)
		return &r
	}
	as := func(*ledger.Run) {}
	refused := func(before ...metav1.Condition) Situation {
		return Situation{
			Job: &v1alpha1.HTCJob{
				Status: v1alpha1.HTCJobStatus{Conditions: before},
			}, Run: run(func(r *ledger.Run) { r.State = ledger.Refused }),
		}
	}
	for name, c := range map[string]struct {
		s    Situation
		v    View
		want string
	}{
		"nothing was sent":               {Situation{}, View{}, ""},
		"its output is not fetched":      {Situation{Run: run(func(r *ledger.Run) { r.OutputDir = "" })}, View{}, ""},
		"it was refused":                 {refused(), View{}, ""},
		"it was refused after another":   {refused(metav1.Condition{Type: v1alpha1.ConditionOutputFetched}), View{}, "True NothingToFetch"},
		"some run":                       {Situation{Run: run(as), Counts: ledger.Counts{Active: 1}, Output: ledger.OutputCounts{Completed: 1}}, View{}, "False NotEnded"},
		"some run, and there is blocker": {Situation{Run: run(as), Counts: ledger.Counts{Active: 1}, Output: ledger.OutputCounts{Completed: 1, Waiting: 1}}, View{Unfetched: &Blocker{Reason: "NoSpace"}}, "False NoSpace"},
		"all ended, says a callback":     {Situation{Run: run(func(r *ledger.Run) { r.Confirmed = false })}, View{}, "False Fetching"},
		"all ended, some are fetched":    {Situation{Run: run(as), Output: ledger.OutputCounts{Completed: 2, Waiting: 1}}, View{}, "False Fetching"},
		"all are fetched":                {Situation{Run: run(as), Output: ledger.OutputCounts{Completed: 2}}, View{}, "True Fetched"},
		"blocker that is over":           {Situation{Run: run(as), Output: ledger.OutputCounts{Completed: 2}}, View{Unfetched: &Blocker{Reason: "NoSpace"}}, "True Fetched"},
		"one lacks a file":               {Situation{Run: run(as), Output: ledger.OutputCounts{Completed: 2, Incomplete: 1}}, View{}, "False Incomplete"},
		"some are given up":              {Situation{Run: run(as), Output: ledger.OutputCounts{Completed: 2, GivenUp: 1}}, View{}, "False GivenUp"},
		"none ran to its end":            {Situation{Run: run(as)}, View{}, "True NothingToFetch"},
		"the ledger was lost":            {Situation{Run: run(func(r *ledger.Run) { r.Restored = true })}, View{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			outputCondition(func(kind string, is metav1.ConditionStatus, reason, _ string) {
				require.Equal(t, v1alpha1.ConditionOutputFetched, kind)
				got = string(is) + " " + reason
			}, c.s, c.v)
			require.Equal(t, c.want, got)
		})
	}
}

func TestADeletedHTCJobsPodIsLeftToKubernetes(t *testing.T) {
	job := htcjob(
		"one",
		func(job *v1alpha1.HTCJob) { job.Spec.LogsPod = true },
		func(job *v1alpha1.HTCJob) { job.DeletionTimestamp = new(metav1.Now()) },
	)
	_, wanted := LogsGoal(
		Situation{Job: job, Run: &ledger.Run{UID: "uid-one", Attempt: 1, State: ledger.Submitted, Confirmed: true}},
	)
	require.False(t, wanted)
}
