package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// SetCondition sets a condition of a status.
type SetCondition func(kind string, is metav1.ConditionStatus, reason, message string)

// maxConditionMessage keeps conditions far under the API's own limit of 32,768 bytes.
const maxConditionMessage = 4096

// Sets returns what sets conditions of a status, which is that of a generation, now. They keep the time of their last
// change.
func Sets(conditions *[]metav1.Condition, generation *int64, now time.Time) SetCondition {
	return func(kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: Shorten(message, maxConditionMessage),
			ObservedGeneration: *generation, LastTransitionTime: metav1.NewTime(seconds(now)),
		})
	}
}

// EndConditions sets those that say whether something has ended, and the two, present and true or absent, by which
// kstatus and tools built on it tell "in progress" and "failed" from "current". Of what has not ended, notEnded says
// so; rests: nothing goes on meanwhile.
func EndConditions(
	set SetCondition,
	conditions *[]metav1.Condition,
	phase v1alpha1.Phase,
	reason, message string,
	notEnded string,
	rests bool,
) {
	stays := ""
	switch phase {
	case v1alpha1.PhaseSucceeded:
		set(v1alpha1.ConditionComplete, metav1.ConditionTrue, reason, message)
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, reason, message)
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		stays = v1alpha1.ConditionStalled
		set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reason, message)
		set(v1alpha1.ConditionFailed, metav1.ConditionTrue, reason, message)
		set(stays, metav1.ConditionTrue, reason, message)
	default:
		set(v1alpha1.ConditionComplete, metav1.ConditionFalse, "NotEnded", notEnded)
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, "NotEnded", notEnded)
		if !rests {
			stays = v1alpha1.ConditionReconciling
			set(stays, metav1.ConditionTrue, "NotEnded", notEnded)
		}
	}
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling} {
		if kind != stays {
			meta.RemoveStatusCondition(conditions, kind)
		}
	}
}

// NothingToFetch says of an attempt that was refused that it has no output, if an earlier one had.
func NothingToFetch(set SetCondition, conditions []metav1.Condition) {
	const kind = v1alpha1.ConditionOutputFetched
	if meta.FindStatusCondition(conditions, kind) != nil {
		set(kind, metav1.ConditionTrue, "NothingToFetch", "this attempt was refused: no job of it ran")
	}
}
