package kube

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// trouble is why an HTCJob does not get on at the moment. It is kept in memory only: after a restart the next try
// finds it again.
type trouble struct {
	condition string // the condition that is False because of it
	reason    string
	message   string
	class     actionClass // in which it was met
	place     schedd.Place
	retry     time.Time // before this nothing is tried again, except by an event
}

// explain turns an error of an action into what the user is told.
func explain(err error) trouble {
	if e, ok := errors.AsType[*CredentialError](err); ok {
		return trouble{condition: v1alpha1.ConditionCredentials, reason: e.Reason, message: e.Message}
	}
	if e, ok := errors.AsType[*limitError](err); ok {
		return trouble{condition: v1alpha1.ConditionSubmitted, reason: reasonNamespaceLimit, message: e.message}
	}
	if e, ok := errors.AsType[*keptError](err); ok {
		return trouble{condition: v1alpha1.ConditionSubmitted, reason: reasonOrphansKept, message: e.Error()}
	}
	if ledger.IsUnavailable(err) {
		return trouble{condition: v1alpha1.ConditionSubmitted, reason: "LedgerUnavailable",
			message: fmt.Sprintf("htcd cannot write its ledger, and goes on when it can: %v", err)}
	}
	kind := schedd.KindOf(err)
	if p, ok := errors.AsType[*placed](err); ok {
		return trouble{condition: v1alpha1.ConditionBackendReachable, reason: kind.String(), message: err.Error(), place: p.place}
	}
	switch kind {
	case schedd.Credentials:
		return trouble{condition: v1alpha1.ConditionCredentials, reason: kind.String(), message: err.Error()}
	case schedd.Unknown:
		return trouble{condition: v1alpha1.ConditionSubmitted, reason: "Retrying", message: err.Error()}
	default:
		return trouble{condition: v1alpha1.ConditionSubmitted, reason: kind.String(), message: err.Error()}
	}
}

// troubles holds the present trouble of each key, safe for concurrent use.
type troubles struct {
	mu sync.Mutex
	m  map[string]trouble
}

func (t *troubles) get(key string) (trouble, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.m[key]
	return v, ok
}

// set remembers v and tells whether the user has not been told the same already.
func (t *troubles) set(key string, v trouble) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[string]trouble{}
	}
	old, had := t.m[key]
	t.m[key] = v
	return !had || old.reason != v.reason || old.message != v.message
}

func (t *troubles) clear(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, key)
}

// with lists the keys whose trouble is such, and in which class of actions they met it.
func (t *troubles) with(such func(trouble) bool) map[string]actionClass {
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
