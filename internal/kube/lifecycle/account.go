package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Dependencies sets the conditions about what an object needs while it is active, or to be deleted: its account and its
// schedd. sent: HTCondor has its newest run.
func (v View) Dependencies(set SetCondition, conditions []metav1.Condition, ended, deleted, sent bool) {
	const kind = v1alpha1.ConditionBackendReachable
	v.credentials(set, conditions, ended, sent)
	switch {
	case deleted && v.BlockedBy(kind): // it says what the user can do
		set(kind, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
	case ended && !deleted && meta.FindStatusCondition(conditions, kind) != nil:
		// What has ended no longer depends on the schedd; a later outage must not rewrite it.
	case v.Backend.Asked && v.Backend.Down:
		set(kind, metav1.ConditionFalse, v.Backend.Reason, v.Backend.Message)
	case v.Backend.Missing > 0:
		set(kind, metav1.ConditionUnknown, backend.ReasonJobsMissing, v.Backend.MissingMessage())
	case v.Backend.Asked:
		set(kind, metav1.ConditionTrue, v.Backend.Reason, v.Backend.Message)
	}
}

// credentials shows whether the account that something is sent with can be used: what runs does not need it now, but
// will.
func (v View) credentials(set SetCondition, conditions []metav1.Condition, ended, sent bool) {
	const kind = v1alpha1.ConditionCredentials
	switch proof := v.Secret; {
	case v.BlockedBy(kind):
		set(kind, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
	case proof.Err != nil && !ended:
		set(kind, metav1.ConditionFalse, proof.Err.Reason, proof.Err.Message)
	case !proof.Known && !ended && meta.FindStatusCondition(conditions, kind) != nil:
		// After a restart the previous condition stays until the Secret has been checked.
	case proof.Err != nil:
	// If the blocker is now the schedd or a full volume, the earlier complaint about the Secret no longer holds.
	case sent, meta.IsStatusConditionFalse(conditions, kind) && !ended:
		set(kind, metav1.ConditionTrue, "TicketValid", "there is a ticket, or a token, to submit with")
	}
}
