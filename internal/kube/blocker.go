package kube

import (
	"errors"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/orphans"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/pool"
	"htc.cern.ch/htcd/internal/schedd"
)

// blocker is why an HTCJob makes no progress at the moment.
type blocker struct {
	lifecycle.Blocker
	class    actionClass // of the action that met it
	endpoint schedd.Endpoint
	retry    time.Time // no retry before this, except after an event
	reported string    // the reason and message as reported to the user, without numbers
}

// explain turns an error of an action into a message for the user.
func explain(err error) blocker {
	if e, ok := errors.AsType[*admission.Waits](err); ok {
		return blocked(v1alpha1.ConditionSubmitted, e.Reason, e.Message)
	}
	if e, ok := errors.AsType[*pool.Unusable](err); ok {
		return blocked(v1alpha1.ConditionSubmitted, e.Reason, e.Message)
	}
	if e, ok := errors.AsType[*orphans.Kept](err); ok {
		return blocked(v1alpha1.ConditionSubmitted, reasonOrphansKept, e.Error())
	}
	if e, ok := errors.AsType[*output.NoSpaceError](err); ok {
		return blocked(v1alpha1.ConditionSubmitted, reasonNoSpace, e.Message)
	}
	if errors.Is(err, ledger.ErrFull) {
		return blocked(v1alpha1.ConditionSubmitted, reasonNoSpace,
			fmt.Sprintf("htcd cannot write its ledger, and goes on when it can; %s: %v", output.MoreRoom, err))
	}
	if ledger.IsUnavailable(err) {
		return blocked(v1alpha1.ConditionSubmitted, "LedgerUnavailable",
			fmt.Sprintf("htcd cannot write its ledger, and goes on when it can: %v", err))
	}
	t := backend.Explain(err)
	b := blocked(conditionOf[t.With], t.Reason, t.Message)
	b.endpoint = t.Endpoint
	return b
}

func blocked(condition, reason, message string) blocker {
	return blocker{Blocker: lifecycle.Blocker{Condition: condition, Reason: reason, Message: message}}
}

// conditionOf maps a part to the condition that shows trouble with it.
var conditionOf = map[backend.Part]string{
	backend.TheCommand:     v1alpha1.ConditionSubmitted,
	backend.TheCredentials: v1alpha1.ConditionCredentials,
	backend.TheSchedd:      v1alpha1.ConditionBackendReachable,
}
