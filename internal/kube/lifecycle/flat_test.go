package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestTheExitCodeIsThatOfAllKnownFailures(t *testing.T) {
	none, one, two, odd := v1alpha1.Failure{}, v1alpha1.Failure{
		ExitCode: new(int32(1)),
	}, v1alpha1.Failure{
		ExitCode: new(int32(2)),
	}, v1alpha1.Failure{
		ExitCode: new(int32(256)),
	}
	for name, c := range map[string]struct {
		phase    v1alpha1.Phase
		failures []v1alpha1.Failure
		want     *int32
	}{
		"all have succeeded":    {v1alpha1.PhaseSucceeded, nil, new(int32(0))},
		"one has failed":        {v1alpha1.PhaseFailed, []v1alpha1.Failure{one}, new(int32(1))},
		"they agree":            {v1alpha1.PhaseFailed, []v1alpha1.Failure{two, two}, new(int32(2))},
		"they differ":           {v1alpha1.PhaseFailed, []v1alpha1.Failure{one, two}, nil},
		"one has none":          {v1alpha1.PhaseFailed, []v1alpha1.Failure{one, none}, nil},
		"the first has none":    {v1alpha1.PhaseFailed, []v1alpha1.Failure{none, one}, nil},
		"one that cannot be":    {v1alpha1.PhaseFailed, []v1alpha1.Failure{odd}, nil},
		"it was refused":        {v1alpha1.PhaseFailed, nil, nil},
		"it was removed":        {v1alpha1.PhaseRemoved, []v1alpha1.Failure{none}, nil},
		"it runs, one has gone": {v1alpha1.PhaseRunning, []v1alpha1.Failure{one}, nil},
	} {
		status := v1alpha1.HTCJobStatus{Phase: c.phase, Failures: c.failures}
		flatFields(&status, Situation{})
		require.Equal(t, c.want, status.ExitCode, name)
	}
}

func TestOutputOfAnEarlierAttemptDoesNotCount(t *testing.T) {
	fetched := []metav1.Condition{{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionTrue}}
	sent, refused := &ledger.Run{State: ledger.Submitted}, &ledger.Run{State: ledger.Refused}
	for name, c := range map[string]struct {
		run        *ledger.Run
		phase      v1alpha1.Phase
		conditions []metav1.Condition
		want       bool
	}{
		"it is here":              {sent, v1alpha1.PhaseFailed, fetched, true},
		"it is not here":          {sent, v1alpha1.PhaseSucceeded, nil, false},
		"the next one runs":       {sent, v1alpha1.PhaseRunning, fetched, false},
		"the next one is refused": {refused, v1alpha1.PhaseFailed, fetched, false},
		"there was none":          {nil, v1alpha1.PhasePending, fetched, false},
	} {
		status := v1alpha1.HTCJobStatus{Phase: c.phase, Conditions: c.conditions}
		flatFields(&status, Situation{Run: c.run})
		require.Equal(t, c.want, status.OutputFetched, name)
	}
}

func TestAStatusHasASentence(t *testing.T) {
	job := func(status v1alpha1.HTCJobStatus) *v1alpha1.HTCJob {
		return &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.Finalizer}}, Status: status}
	}
	run := func(state ledger.RunState, message string) *ledger.Run {
		return &ledger.Run{
			State:    state,
			Procs:    2,
			Cluster:  7,
			Attempt:  1,
			Schedd:   "a",
			SpecHash: job(v1alpha1.HTCJobStatus{}).SpecHash(),
			Reason:   "Refused",
			Message:  message,
		}
	}
	for name, c := range map[string]struct {
		s    Situation
		want string
	}{
		"nothing was sent":    {Situation{Early: true}, "waiting to be submitted"},
		"they wait":           {Situation{Run: run(ledger.Submitted, ""), Counts: ledger.Counts{Active: 2, Idle: 2}}, "cluster 7 with 2 jobs is at schedd a"},
		"one runs":            {Situation{Run: run(ledger.Submitted, ""), Counts: ledger.Counts{Active: 2, Idle: 1, Running: 1}}, "1 job is running"},
		"both have succeeded": {Situation{Run: run(ledger.Submitted, ""), Counts: ledger.Counts{Succeeded: 2}}, "2 jobs succeeded"},
		"a long refusal":      {Situation{Run: run(ledger.Refused, strings.Repeat("ä", 5000))}, Shorten(strings.Repeat("ä", 5000), MaxNote)},
		"the ledger was lost": {Situation{Job: job(v1alpha1.HTCJobStatus{Attempt: 1, Phase: v1alpha1.PhaseSucceeded, Message: "before"})}, "before"},
	} {
		if c.s.Job == nil {
			c.s.Job = job(v1alpha1.HTCJobStatus{})
		}
		require.Equal(t, c.want, NewStatus(c.s, View{}).Message, name)
	}
}

func TestAResultIsReadWhenAllOfItIsHere(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	here := func(change func(*Situation)) Situation {
		s := Situation{
			Job: job,
			Run: &ledger.Run{
				State:     ledger.Submitted,
				Procs:     2,
				Attempt:   1,
				Confirmed: true,
				SpecHash:  job.SpecHash(),
			},
			Counts: ledger.Counts{Succeeded: 2},
			Output: ledger.OutputCounts{Completed: 2},
		}
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		change func(*Situation)
		want   bool
	}{
		"all is here":         {func(*Situation) {}, true},
		"one runs":            {func(s *Situation) { s.Counts = ledger.Counts{Active: 1, Succeeded: 1} }, false},
		"one has failed":      {func(s *Situation) { s.Counts = ledger.Counts{Failed: 1, Succeeded: 1} }, false},
		"one waits":           {func(s *Situation) { s.Unfetched, s.Output.Waiting = true, 1 }, false},
		"one was given up":    {func(s *Situation) { s.Output.GivenUp = 1 }, false},
		"one lacks files":     {func(s *Situation) { s.Output.Incomplete = 1 }, false},
		"HTCondor will say":   {func(s *Situation) { s.Output.Completed = 1 }, false},
		"it was refused":      {func(s *Situation) { s.Run.State = ledger.Refused }, false},
		"the ledger was lost": {func(s *Situation) { s.Run.Restored, s.Output.Completed = true, 0 }, false},
	} {
		require.Equal(t, c.want, here(c.change).HasResult(), name)
	}

	s := here(func(*Situation) {})
	job.Generation = 3
	job.Status = v1alpha1.HTCJobStatus{Attempt: 1, ObservedGeneration: 3, Result: new("42")}
	require.Equal(t, "42", *s.KeptResult())
	job.Status.ObservedGeneration = 2
	require.Nil(t, s.KeptResult(), "another file may be asked for")
	job.Status.ObservedGeneration, job.Status.Attempt = 3, 2
	require.Nil(t, s.KeptResult(), "it is another attempt's")
}

func TestSuccessWaitsForTheOutputIfItIsToldTo(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.Spec.CompleteAfterOutput = true
	for name, c := range map[string]struct {
		change func(*Situation)
		want   v1alpha1.Phase
	}{
		"its output is on its way":          {func(*Situation) {}, v1alpha1.PhaseRunning},
		"all of it is here, or never comes": {func(s *Situation) { s.Unfetched = false }, v1alpha1.PhaseSucceeded},
		"it was not asked for":              {func(s *Situation) { s.Job = &v1alpha1.HTCJob{} }, v1alpha1.PhaseSucceeded},
		"one has failed":                    {func(s *Situation) { s.Counts = ledger.Counts{Succeeded: 1, Failed: 1} }, v1alpha1.PhaseFailed},
		"one waits":                         {func(s *Situation) { s.Counts = ledger.Counts{Succeeded: 1, Active: 1} }, v1alpha1.PhaseIdle},
	} {
		s := Situation{
			Job:       job,
			Run:       &ledger.Run{State: ledger.Submitted, Procs: 2, SpecHash: job.SpecHash()},
			Counts:    ledger.Counts{Succeeded: 2},
			Unfetched: true,
		}
		c.change(&s)
		status := NewStatus(s, View{})
		require.Equal(t, c.want, status.Phase, name)
		require.Equal(
			t,
			c.want == v1alpha1.PhaseSucceeded,
			meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionComplete),
			name,
		)
		if c.want == v1alpha1.PhaseRunning {
			require.Equal(t, "2 jobs succeeded; spec.completeAfterOutput waits for their output", status.Message)
			require.Zero(t, status.Active)
		}
	}
}

func TestTheDurationIsSaidWhenItNoLongerGrows(t *testing.T) {
	began := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*Situation)
		want   string
	}{
		"all have ended":             {func(*Situation) {}, "1m2s"},
		"one runs":                   {func(s *Situation) { s.Counts.Active = 1 }, ""},
		"only callbacks say so":      {func(s *Situation) { s.Run.Confirmed = false }, ""},
		"none has started":           {func(s *Situation) { s.Run.Started = time.Time{} }, ""},
		"no end is known":            {func(s *Situation) { s.Run.Finished = time.Time{} }, ""},
		"an htcd without this wrote": {func(s *Situation) { s.Run.Started, s.Run.Finished = time.Time{}, time.Time{} }, ""},
	} {
		s := Situation{
			Run: &ledger.Run{
				Confirmed: true,
				Started:   began,
				Finished:  began.Add(62*time.Second + 300*time.Millisecond),
			},
		}
		c.change(&s)
		require.Equal(t, c.want, ran(s), name)
	}
}
