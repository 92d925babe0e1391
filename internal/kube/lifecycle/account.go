package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/backend"
)

// CredentialsCondition shows whether the account that something is sent with can be used, unless a blocker has shown
// it: what runs does not need it now, but will.
func CredentialsCondition(
	set func(kind string, is metav1.ConditionStatus, reason, message string),
	conditions []metav1.Condition,
	proof backend.Proof,
	ended, sent bool,
) {
	const kind = v1alpha1.ConditionCredentials
	switch {
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
