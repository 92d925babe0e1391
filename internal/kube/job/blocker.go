package job

import (
	"time"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/sending"
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
	b, endpoint := sending.Explain(err)
	return blocker{Blocker: b, endpoint: endpoint}
}

func blocked(condition, reason, message string) blocker {
	return blocker{Blocker: lifecycle.Blocker{Condition: condition, Reason: reason, Message: message}}
}
