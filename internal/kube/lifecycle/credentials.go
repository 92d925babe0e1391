package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Fresh says whether the credentials of active jobs are valid, and for some time more.
type Fresh struct {
	Is              bool
	Reason, Message string
}

// freshCondition shows it while there are active jobs.
func freshCondition(set setCondition, status *v1alpha1.HTCJobStatus, s Situation, fresh *Fresh) {
	const kind = v1alpha1.ConditionCredentialsFresh
	switch {
	case status.Phase.Terminal() || status.Active == 0:
		meta.RemoveStatusCondition(&status.Conditions, kind)
	case fresh == nil: // there are none, or nothing is known yet
	case fresh.Is:
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
