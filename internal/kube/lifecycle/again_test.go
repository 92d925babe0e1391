package lifecycle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

func TestWhatTheNextAttemptSends(t *testing.T) {
	for name, c := range map[string]struct {
		rerun, procs string
		change       func(*Situation)
		choice       Choice
		why          string
	}{
		"all, as they are asked to":              {rerun: "2"},
		"all, as nothing is known of them":       {change: func(s *Situation) { s.Run.SpecHash = "" }, rerun: "2", procs: "failed"},
		"all, as the spec was changed":           {change: func(s *Situation) { s.Run.SpecHash = "other" }, rerun: "2", procs: "failed"},
		"those that have failed":                 {rerun: "2", procs: "failed", choice: Unsucceeded},
		"those that are listed":                  {rerun: "2", procs: "0,3", choice: Listed},
		"the rest of a suspended one":            {change: func(s *Situation) { s.Run.State = ledger.Removed }, choice: Unended},
		"a list is nothing without a new value":  {rerun: "1", procs: "3", change: func(s *Situation) { s.Run.State = ledger.Removed }, choice: Unended},
		"all of a suspended one that was lost":   {change: func(s *Situation) { s.Run.State, s.Run.Restored = ledger.Removed, true }},
		"one that is not there":                  {rerun: "2", procs: "4", why: "there is no job 4"},
		"one that is not, of a suspended one":    {rerun: "2", procs: "4", change: func(s *Situation) { s.Run.State = ledger.Removed }, choice: Unended, why: "there is no job 4"},
		"no numbers":                             {rerun: "2", procs: "all", why: "expected numbers and ranges"},
		"none has failed":                        {rerun: "2", procs: "failed", change: func(s *Situation) { s.Counts.Failed = 0 }, why: "no job of it has failed"},
		"more have failed than were remembered":  {rerun: "2", procs: "failed", change: func(s *Situation) { s.Run.Restored, s.Counts.Failed = true, 11 }, why: "was lost with the ledger"},
		"as many have failed as were remembered": {rerun: "2", procs: "failed", change: func(s *Situation) { s.Run.Restored, s.Counts.Failed = true, 10 }, choice: Unsucceeded},
	} {
		job := &v1alpha1.HTCJob{}
		job.Annotations = map[string]string{v1alpha1.RerunAnnotation: c.rerun, v1alpha1.RerunProcsAnnotation: c.procs}
		s := Situation{
			Job:    job,
			Run:    &ledger.Run{State: ledger.Submitted, Procs: 4, Rerun: "1", SpecHash: job.SpecHash()},
			Counts: ledger.Counts{Succeeded: 2, Failed: 2},
		}
		if c.change != nil {
			c.change(&s)
		}
		choice, _, why := s.Again()
		require.Equal(t, c.choice, choice, name)
		require.Equal(t, c.why == "", why == "", name)
		require.Contains(t, why, c.why, name)
	}
}

func TestTheNumbersThatAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		listed, want string
		kept         []int
	}{
		"what has not ended":               {want: "1,3", kept: []int{0, 2}},
		"what is listed, and the unended":  {listed: "0", want: "0-1,3", kept: []int{0, 2}},
		"what is listed":                   {listed: "2", want: "2", kept: []int{0, 1, 2, 3}},
		"all, since none has ended":        {},
		"all, since all are listed":        {listed: "0-3", kept: []int{0, 1, 2, 3}},
		"all, since the rest has not been": {listed: "0-1", kept: []int{0, 1}},
	} {
		var listed procset.Set
		if c.listed != "" {
			var err error
			listed, err = procset.Parse(c.listed, 4)
			require.NoError(t, err)
		}
		require.Equal(t, c.want, Numbers(listed, c.kept, 4).String(), name)
	}
}

func TestAPartComesBackFromItsStatus(t *testing.T) {
	run := ledger.Run{UID: "u", Attempt: 2, Procs: 4, Confirmed: true}
	status := v1alpha1.HTCJobStatus{
		Succeeded: 2,
		Failed:    2,
		Partial:   &v1alpha1.Partial{Procs: "1,3", Succeeded: 1, Failed: 1},
		Failures: []v1alpha1.Failure{
			{JobID: "7.0", Proc: new(int32(0)), Reason: "Lost"},
			{JobID: "9.1", Proc: new(int32(3)), Reason: "ExitCode", ExitCode: new(int32(5))},
		},
	}
	run = Recalled(run, status)
	require.Equal(t, []any{"1,3", 2, 4, 1}, []any{run.Sent, run.Procs, run.Jobs, run.KeptFailed})
	require.Equal(t, status.Partial, partial(&run))
	said := func(procs []ledger.Proc) (all string) {
		for _, p := range procs {
			all += p.JobID() + map[ledger.Status]string{ledger.StatusSucceeded: "+", ledger.StatusFailed: "-"}[p.Status] + p.Source + " "
		}
		return all
	}
	require.Equal(t, "7.0-carried 0.2+carried ", said(Kept(run, status)))
	require.Equal(t, "0.1+crosscheck 9.1-crosscheck ", said(Ends(run, status)))

	require.Equal(t, ledger.NotFetched, Ends(run, status)[1].Fetched, "of an htcd that fetched nothing")
	status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionFalse, Reason: "Fetching"},
	}
	require.Equal(t, ledger.NotFetched, Ends(run, status)[1].Fetched)
	status.Conditions[0].Status = metav1.ConditionTrue
	require.Equal(t, ledger.IsFetched, Ends(run, status)[1].Fetched)

	long := &ledger.Run{Sent: strings.Repeat("1,", 10000) + "1", Procs: 1, Jobs: 2}
	cut := partial(long)
	require.Less(t, len(cut.Procs), maxPartial+10)
	require.Empty(t, Recalled(ledger.Run{}, v1alpha1.HTCJobStatus{Partial: cut}).Sent, "the ads say it")
	require.False(t, restorable(v1alpha1.HTCJobStatus{ClusterID: 7, Partial: cut}))
	require.True(t, restorable(v1alpha1.HTCJobStatus{ClusterID: 7, Partial: status.Partial}))
}
