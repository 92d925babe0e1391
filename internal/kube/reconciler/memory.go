package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/schedd"
)

// Memory holds what is known of each object besides the ledger, by key. It is lost with the process: after a restart
// the next try finds it again. What is known of an object is not known of another one of its name. It is safe for
// concurrent use.
type Memory[K any] struct {
	UID func(key string) string // of the object that has the name now, "" if there is none
	mu  sync.Mutex
	m   map[string]Record[K]
}

// Record is what is known of one object.
type Record[K any] struct {
	uid      string // of the object that it is about
	Blockers Blockers
	Wrote    time.Time // when its status was last written
	unwrote  string    // why the last try to write it failed, without numbers; empty: it did not
	Agreed   types.UID // of the object, if the ledger has known all that its status said: see lifecycle.Whose
	Released string    // the version of the deleted object from which our finalizer was removed
	Handed   Handed    // until its trace is handed over
	Kind     K         // what only objects of its kind have
}

// Blocker is why an object makes no progress at the moment.
type Blocker struct {
	lifecycle.Blocker
	Class    Class           // of the action that met it
	Endpoint schedd.Endpoint // the one that does not answer
	Retry    time.Time       // no retry before this, except after an event
	reported string          // the reason and message as reported to the user, without numbers
}

// Blocked returns a blocker with what a condition says of it.
func Blocked(condition, reason, message string) Blocker {
	return Blocker{Blocker: lifecycle.Blocker{Condition: condition, Reason: reason, Message: message}}
}

// Explain turns an error into what a condition says of it.
func Explain(err error) Blocker {
	b, endpoint := sending.Explain(err)
	return Blocker{Blocker: b, Endpoint: endpoint}
}

// Blockable is what a blocker can prevent.
type Blockable int

const (
	Acting     Blockable = iota // the next action
	Fetching                    // of its output
	Pushing                     // of its artifacts
	Reading                     // of its jobs' ads
	blockables = iota
)

// Blockers are what prevents each thing; nil: nothing does.
type Blockers [blockables]*Blocker

// Of returns what a condition says of it.
func (b Blockers) Of(what Blockable) *lifecycle.Blocker {
	if b[what] == nil {
		return nil
	}
	return &b[what].Blocker
}

// Of returns what is known of an object.
func (m *Memory[K]) Of(key string) Record[K] {
	uid := m.UID(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[key].ifOf(uid)
}

// ifOf returns what is known if it is about that object, else that nothing is.
func (r Record[K]) ifOf(uid string) Record[K] {
	if r.uid != uid {
		return Record[K]{uid: uid}
	}
	return r
}

// Change changes what is known of an object.
func (m *Memory[K]) Change(key string, f func(*Record[K])) {
	uid := m.UID(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.m[key].ifOf(uid)
	f(&r)
	if m.m == nil {
		m.m = map[string]Record[K]{}
	}
	m.m[key] = r
}

// Forget is called when an object is gone, and nothing of it is left.
func (m *Memory[K]) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, key)
}

// Len returns of how many objects something is known.
func (m *Memory[K]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.m)
}

// Block records a blocker and reports whether it is news to the user. Messages that differ only in numbers are the
// same: the free space of a volume differs at every try.
func (m *Memory[K]) Block(key string, what Blockable, b Blocker) (news bool) {
	b.reported = b.Reason + ": " + recovery.Numbers.ReplaceAllString(b.Message, "#")
	m.Change(key, func(r *Record[K]) {
		news = r.Blockers[what] == nil || r.Blockers[what].reported != b.reported
		r.Blockers[what] = &b
	})
	return news
}

// NotWritten records why the status was not written, and reports whether that is news to the administrator.
func (m *Memory[K]) NotWritten(key string, err error) (news bool) {
	words := recovery.Numbers.ReplaceAllString(err.Error(), "#")
	m.Change(key, func(r *Record[K]) { news, r.unwrote = r.unwrote != words, words })
	return news
}

// Written records that there was nothing in the way of the status.
func (m *Memory[K]) Written(key string) {
	if m.Of(key).unwrote != "" {
		m.Change(key, func(r *Record[K]) { r.unwrote = "" })
	}
}

// Wait records that the next action only needs time. The same trouble afterwards is not news to the user.
func (m *Memory[K]) Wait(key string, b Blocker) {
	m.Change(key, func(r *Record[K]) {
		if before := r.Blockers[Acting]; before != nil {
			b.reported = before.reported
		}
		r.Blockers[Acting] = &b
	})
}

// Unblock records that nothing prevents it any more, and reports whether something did.
func (m *Memory[K]) Unblock(key string, what Blockable) (blocked bool) {
	if m.Of(key).Blockers[what] == nil {
		return false
	}
	m.Change(key, func(r *Record[K]) { r.Blockers[what] = nil })
	return true
}

// Blocked returns the blockers that satisfy such, by key.
func (m *Memory[K]) Blocked(what Blockable, such func(Blocker) bool) map[string]Blocker {
	m.mu.Lock()
	defer m.mu.Unlock()
	blockers := map[string]Blocker{}
	for key, r := range m.m {
		if b := r.Blockers[what]; b != nil && such(*b) {
			blockers[key] = *b
		}
	}
	return blockers
}

// BetweenWrites is how long a change of mere counts waits after the write of a status, so that more is written with
// it: every watcher gets the whole object with every write, and the jobs of a large object end one by one.
const BetweenWrites = time.Second

// UntilWrite returns how long a write has to wait that comes pause after the one before at the earliest.
func (m *Memory[K]) UntilWrite(key string, now time.Time, pause time.Duration) time.Duration {
	return m.Of(key).Wrote.Add(pause).Sub(now)
}

// UntilFirstWrite is UntilWrite for the first write; it counts from the first call.
func (m *Memory[K]) UntilFirstWrite(key string, now time.Time, pause time.Duration) time.Duration {
	m.Change(key, func(r *Record[K]) {
		if r.Wrote.IsZero() {
			r.Wrote = now
		}
	})
	return m.UntilWrite(key, now, pause)
}
