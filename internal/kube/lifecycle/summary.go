package lifecycle

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Summary returns what a list shows of a status: the reason that matters most, with the message of its condition.
// Without one there is only how far it is or, where that is not known, whether it was sent.
func Summary(phase v1alpha1.Phase, conditions []metav1.Condition, far string) (reason, message string) {
	if why := mattersMost(phase, conditions); why != nil {
		return why.Reason, Shorten(why.Message, MaxNote)
	}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionSubmitted); far == "" && c != nil {
		far = c.Message
	}
	return "", Shorten(far, MaxNote)
}

// Far returns how far something was, as a status says that is kept; not the reason why it did not get on then.
func Far(reason, message string) string {
	if reason != "" {
		return ""
	}
	return message
}

// mattersMost returns the condition whose reason matters most in a list, nil if none does.
func mattersMost(phase v1alpha1.Phase, conditions []metav1.Condition) *metav1.Condition {
	of := func(kind string, as ...metav1.ConditionStatus) *metav1.Condition {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || !slices.Contains(as, c.Status) {
			return nil
		}
		return c
	}
	if phase.Terminal() {
		return of(v1alpha1.ConditionStalled, metav1.ConditionTrue)
	}
	stopping := of(v1alpha1.ConditionSuspended, metav1.ConditionFalse)
	if stopping != nil && stopping.Reason != ReasonStopping {
		stopping = nil
	}
	return cmp.Or(
		of(v1alpha1.ConditionSuspended, metav1.ConditionTrue),
		stopping,
		of(v1alpha1.ConditionCredentials, metav1.ConditionFalse),
		of(v1alpha1.ConditionBackendReachable, metav1.ConditionFalse, metav1.ConditionUnknown),
		of(v1alpha1.ConditionInputsReady, metav1.ConditionFalse),
		of(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, metav1.ConditionUnknown),
		of(v1alpha1.ConditionFailureTarget, metav1.ConditionTrue),
		of(v1alpha1.ConditionSuccessCriteria, metav1.ConditionTrue),
		of(v1alpha1.ConditionHeld, metav1.ConditionTrue),
		of(v1alpha1.ConditionMatchable, metav1.ConditionFalse),
	)
}

// ReasonStopping is a reason of the condition Suspended while it is not yet True.
const ReasonStopping = "Stopping"

// AwaitsOutput returns the reason and message of what has succeeded, and spec.completeAfterOutput does not let be
// called so yet.
func AwaitsOutput(succeeded string) (reason, message string) {
	return "FetchingOutput", succeeded + " succeeded; spec.completeAfterOutput waits for their output"
}
