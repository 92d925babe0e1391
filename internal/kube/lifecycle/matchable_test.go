package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/matching"
)

func TestMatchableIsThereWhileJobsWait(t *testing.T) {
	var conditions []metav1.Condition
	look := func(waits bool, v *matching.Verdict) (news []Event) {
		before := append([]metav1.Condition(nil), conditions...)
		MatchableCondition(func(kind string, is metav1.ConditionStatus, reason, message string) {
			meta.SetStatusCondition(
				&conditions,
				metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message},
			)
		}, &conditions, waits, v)
		return MatchableNews(before, conditions)
	}
	none := &matching.Verdict{
		Is:      metav1.ConditionFalse,
		Reason:  matching.ReasonNoMachine,
		Message: "0 of 3 machines have 500 GiB (largest 32 GiB)",
	}
	busy := &matching.Verdict{
		Is:      metav1.ConditionTrue,
		Reason:  matching.ReasonAllBusy,
		Message: "machines match, all busy",
	}
	require.Empty(t, look(true, nil))
	require.Empty(t, conditions, "nothing is known yet")
	require.Empty(t, look(true, busy), "that jobs wait for others is no news")
	require.Equal(t, []Event{{true, none.Reason, none.Message}}, look(true, none))
	require.Empty(t, look(true, none), "once")
	require.Empty(t, look(true, nil), "after a restart what was known stays")
	require.Equal(t, none.Reason, conditions[0].Reason)
	require.Empty(t, look(false, none))
	require.Empty(t, conditions)
	vain := &matching.Verdict{Is: metav1.ConditionFalse, Reason: matching.ReasonInVain}
	require.Len(t, look(false, vain), 1, "it is started again and again")
	require.Empty(t, look(true, vain))
}

func TestWhyAJobHasWaitedForTooLongStays(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	meta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{
		Type:    v1alpha1.ConditionMatchable,
		Status:  metav1.ConditionFalse,
		Reason:  matching.ReasonNoneMeets,
		Message: "HasFPGA",
	})
	status := func(reason string) v1alpha1.HTCJobStatus {
		return NewStatus(Situation{
			Job: job, Run: &ledger.Run{State: ledger.Submitted, Attempt: 1}, Counts: ledger.Counts{Failed: 1},
			Failures: []ledger.Proc{{Status: ledger.StatusFailed, Reason: reason}},
		}, View{})
	}
	is := status(condor.ReasonIdleTooLong)
	require.Equal(t, v1alpha1.PhaseFailed, is.Phase)
	require.Equal(t, "HasFPGA", meta.FindStatusCondition(is.Conditions, v1alpha1.ConditionMatchable).Message)
	require.Equal(t, condor.ReasonIdleTooLong, is.Reason)
	require.Nil(t, meta.FindStatusCondition(status("ExitCode").Conditions, v1alpha1.ConditionMatchable))
}
