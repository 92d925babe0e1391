package job

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/recovery"
)

// memory holds what is known of each HTCJob besides the ledger, by key. It is lost with the process: after a restart the next
// try finds it again. What is known of an HTCJob is not known of another one of its name. It is safe for concurrent use.
type memory struct {
	uid func(key string) string // of the HTCJob that has the name now, "" if there is none
	mu  sync.Mutex
	m   map[string]remembered
}

// remembered is the record of one HTCJob.
type remembered struct {
	uid      string // of the HTCJob that it is about
	blockers [blockables]*blocker
	wrote    time.Time              // when its status was last written; zero once it has ended and its output is here
	logs     *lifecycle.LogsOutcome // of the last try to leave its Pod
	agreed   types.UID              // of the object, if the ledger has known all that its status said: see lifecycle.Whose
	released string                 // the version of the deleted object from which our finalizer was removed
}

// blockable is what a blocker can prevent.
type blockable int

const (
	acting     blockable = iota // the next action
	fetching                    // of its output
	pushing                     // of its artifacts
	reading                     // of its jobs' ads
	blockables = iota
)

func (m *memory) of(key string) remembered {
	uid := m.uid(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[key].ifOf(uid)
}

// ifOf returns what is remembered if it is about that HTCJob, else that nothing is.
func (r remembered) ifOf(uid string) remembered {
	if r.uid != uid {
		return remembered{uid: uid}
	}
	return r
}

func (m *memory) change(key string, f func(*remembered)) {
	uid := m.uid(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.m[key].ifOf(uid)
	f(&r)
	if m.m == nil {
		m.m = map[string]remembered{}
	}
	if m.m[key] = r; r == (remembered{uid: uid}) {
		delete(m.m, key)
	}
}

func (m *memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, key)
}

// block records a blocker and reports whether it is news to the user. Messages that differ only in numbers are the same: the
// free space of a volume differs at every try.
func (m *memory) block(key string, what blockable, b blocker) (news bool) {
	b.reported = b.Reason + ": " + recovery.Numbers.ReplaceAllString(b.Message, "#")
	m.change(key, func(r *remembered) {
		news = r.blockers[what] == nil || r.blockers[what].reported != b.reported
		r.blockers[what] = &b
	})
	return news
}

// wait records that the next action only needs time. The same trouble afterwards is not news to the user.
func (m *memory) wait(key string, b blocker) {
	m.change(key, func(r *remembered) {
		if before := r.blockers[acting]; before != nil {
			b.reported = before.reported
		}
		r.blockers[acting] = &b
	})
}

func (m *memory) unblock(key string, what blockable) {
	m.change(key, func(r *remembered) { r.blockers[what] = nil })
}

// blockers returns those that satisfy such, by key.
func (m *memory) blockers(what blockable, such func(blocker) bool) map[string]blocker {
	m.mu.Lock()
	defer m.mu.Unlock()
	blockers := map[string]blocker{}
	for key, r := range m.m {
		if b := r.blockers[what]; b != nil && such(*b) {
			blockers[key] = *b
		}
	}
	return blockers
}

// untilWrite returns how long a write has to wait that comes pause after the one before at the earliest.
func (m *memory) untilWrite(key string, now time.Time, pause time.Duration) time.Duration {
	return m.of(key).wrote.Add(pause).Sub(now)
}

// untilFirstWrite is untilWrite for the first write; it counts from the first sync.
func (m *memory) untilFirstWrite(key string, now time.Time) time.Duration {
	m.change(key, func(r *remembered) {
		if r.wrote.IsZero() {
			r.wrote = now
		}
	})
	return m.untilWrite(key, now, firstWrite)
}

// wrote records when a status was written; the zero time means that it is not expected to change any more.
func (m *memory) wrote(key string, at time.Time) { m.change(key, func(r *remembered) { r.wrote = at }) }

// tried records the outcome of a try to leave a Pod and reports whether it differs from the previous one; nil forgets it.
func (m *memory) tried(key string, outcome *lifecycle.LogsOutcome) (news bool) {
	m.change(key, func(r *remembered) {
		news = outcome != nil && (r.logs == nil || *r.logs != *outcome)
		r.logs = outcome
	})
	return news
}
