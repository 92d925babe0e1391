package kube

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/orphans"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/recovery"
	"htc.cern.ch/htcd/internal/schedd"
)

// blocker is why an HTCJob makes no progress at the moment. It is kept in memory only: after a restart the next try
// finds it again.
type blocker struct {
	lifecycle.Blocker
	class    actionClass // of the action that met it
	endpoint schedd.Endpoint
	retry    time.Time // no retry before this, except after an event
	reported string    // the reason and message as reported to the user, without numbers
}

// explain turns an error of an action into a message for the user.
func explain(err error) blocker {
	if e, ok := errors.AsType[*limitError](err); ok {
		return blocked(v1alpha1.ConditionSubmitted, lifecycle.ReasonNamespaceLimit, e.message)
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

// blockers holds the present blocker of each key, safe for concurrent use.
type blockers struct {
	mu sync.Mutex
	m  map[string]blocker
}

func (t *blockers) get(key string) (blocker, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.m[key]
	return v, ok
}

// set remembers v and reports whether it is news to the user. Messages that differ only in numbers are the same: the free
// space of a volume differs at every try.
func (t *blockers) set(key string, v blocker) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.m[key].reported
	v.reported = v.Reason + ": " + recovery.Numbers.ReplaceAllString(v.Message, "#")
	t.put(key, v)
	return v.reported != before
}

// wait remembers that the HTCJob only needs time. The same trouble afterwards is not news to the user.
func (t *blockers) wait(key string, v blocker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.reported = t.m[key].reported
	t.put(key, v)
}

func (t *blockers) put(key string, v blocker) {
	if t.m == nil {
		t.m = map[string]blocker{}
	}
	t.m[key] = v
}

func (t *blockers) clear(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, key)
}

// with lists the keys whose blocker satisfies such, with the class of action that met it.
func (t *blockers) with(such func(blocker) bool) map[string]actionClass {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := map[string]actionClass{}
	for key, v := range t.m {
		if such(v) {
			keys[key] = v.class
		}
	}
	return keys
}
