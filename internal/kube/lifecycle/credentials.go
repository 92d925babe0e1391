package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
)

// FreshCondition shows whether the credentials of active jobs are valid, and for some time more.
func FreshCondition(
	set SetCondition,
	conditions *[]metav1.Condition,
	active bool,
	fresh *jobcredentials.Freshness,
) {
	const kind = v1alpha1.ConditionCredentialsFresh
	switch {
	case !active:
		meta.RemoveStatusCondition(conditions, kind)
	case fresh == nil: // there are none, or nothing is known yet
	case fresh.Fresh:
		set(kind, metav1.ConditionTrue, fresh.Reason, fresh.Message)
	default:
		set(kind, metav1.ConditionFalse, fresh.Reason, fresh.Message)
	}
}

// FreshNews tells when credentials are about to end, cannot be read, or have been renewed.
func FreshNews(before, after []metav1.Condition) []Event {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionCredentialsFresh)
	is := meta.FindStatusCondition(after, v1alpha1.ConditionCredentialsFresh)
	switch {
	case is == nil:
	case is.Status == metav1.ConditionFalse && (was == nil || was.Status != is.Status || was.Reason != is.Reason):
		return []Event{{true, is.Reason, is.Message}}
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		return []Event{{false, "CredentialsRenewed", is.Message}}
	}
	return nil
}
