package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/matching"
)

// MatchableCondition shows why jobs wait for a slot, while there are any. What was known stays until more is. A job
// that is started in vain is told also while it is seen running.
func MatchableCondition(
	set SetCondition,
	conditions *[]metav1.Condition,
	waits bool,
	v *matching.Verdict,
) {
	switch {
	case !waits && (v == nil || v.Reason != matching.ReasonInVain):
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionMatchable)
	case v != nil:
		set(v1alpha1.ConditionMatchable, v.Is, v.Reason, v.Message)
	}
}

// MatchableNews tells when no slot can ever be had.
func MatchableNews(before, after []metav1.Condition) []Event {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionMatchable)
	is := meta.FindStatusCondition(after, v1alpha1.ConditionMatchable)
	if is == nil || is.Status != metav1.ConditionFalse ||
		was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return []Event{{true, is.Reason, is.Message}}
}
