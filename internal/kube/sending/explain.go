package sending

import (
	"errors"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

const (
	// ReasonNoSpace is a reason of the conditions OutputFetched and Submitted.
	ReasonNoSpace = "NoSpace"
	// ReasonLedgerUnavailable is the reason of what waits until the ledger can be written.
	ReasonLedgerUnavailable = "LedgerUnavailable"
	// ReasonOrphansKept is that of what an administrator has to decide.
	ReasonOrphansKept = "OrphansKept"
)

// Explain turns an error of what is done for an object into what its conditions say, and names the schedd that does not
// answer, if that is why.
func Explain(err error) (lifecycle.Blocker, schedd.Endpoint) {
	submitted := func(reason, message string) (lifecycle.Blocker, schedd.Endpoint) {
		return lifecycle.Blocker{
			Condition: v1alpha1.ConditionSubmitted,
			Reason:    reason,
			Message:   message,
		}, schedd.Endpoint{}
	}
	if e, ok := errors.AsType[interface {
		error
		Blocker() lifecycle.Blocker
	}](err); ok {
		return e.Blocker(), schedd.Endpoint{}
	}
	if e, ok := errors.AsType[*artifact.Unusable](err); ok {
		return lifecycle.Blocker{
			Condition: v1alpha1.ConditionOutputsPushed,
			Reason:    e.Reason,
			Message:   err.Error(),
		}, schedd.Endpoint{}
	}
	if e, ok := errors.AsType[*admission.Waits](err); ok {
		return submitted(e.Reason, e.Message)
	}
	if e, ok := errors.AsType[*pool.Unusable](err); ok {
		return submitted(e.Reason, e.Message)
	}
	if e, ok := errors.AsType[*orphans.Kept](err); ok {
		return submitted(ReasonOrphansKept, e.Error())
	}
	if e, ok := errors.AsType[*output.NoSpaceError](err); ok {
		return submitted(ReasonNoSpace, e.Message)
	}
	if errors.Is(err, ledger.ErrFull) {
		return submitted(
			ReasonNoSpace,
			fmt.Sprintf("htcd cannot write its ledger, and goes on when it can; %s: %v", output.MoreRoom, err),
		)
	}
	if ledger.IsUnavailable(err) || errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrCorrupt) {
		return submitted(
			ReasonLedgerUnavailable,
			fmt.Sprintf("htcd cannot write its ledger, and goes on when it can: %v", err),
		)
	}
	t := backend.Explain(err)
	return lifecycle.Blocker{Condition: conditionOf[t.With], Reason: t.Reason, Message: t.Message}, t.Endpoint
}

// ExplainPush turns what Explain says of an error of a push into what its condition says.
func ExplainPush(err error, b lifecycle.Blocker) lifecycle.Blocker {
	if e, is := errors.AsType[*inputs.Waiting](err); is {
		b.Reason, b.Message = e.Reason, err.Error()
	}
	b.Condition, b.Message = v1alpha1.ConditionOutputsPushed, "not pushed yet: "+b.Message
	return b
}

// conditionOf maps a part to the condition that shows trouble with it.
var conditionOf = map[backend.Part]string{
	backend.TheCommand:     v1alpha1.ConditionSubmitted,
	backend.TheCredentials: v1alpha1.ConditionCredentials,
	backend.TheSchedd:      v1alpha1.ConditionBackendReachable,
}
