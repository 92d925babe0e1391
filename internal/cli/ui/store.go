package ui

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// kind is what an object is, as kubectl calls one.
type kind string

const (
	jobs      kind = "htcjob"
	workflows kind = "htcworkflow"
	pools     kind = "htcpool"
)

// ref names an object.
type ref struct {
	Kind            kind
	Namespace, Name string // Namespace is empty for a pool
}

// store has the newest version of every object, and remembers in which order they came.
type store struct {
	mu      sync.Mutex
	at      uint64 // counts the changes
	objects map[ref]*version
	gone    []ref  // those in objects that were deleted, the longest ago first
	dropped uint64 // up to this change, deletions have been forgotten
	more    chan struct{}
	trouble map[string]string // what cannot be watched at present, and why
}

// version is an object as of one change.
type version struct {
	ref
	at     uint64
	object any // nil: it was deleted
}

// mostGone bounds the deletions that are remembered for pages that are behind.
const mostGone = 10_000

func newStore() *store {
	return &store{objects: map[ref]*version{}, more: make(chan struct{}), trouble: map[string]string{}}
}

// put takes a new version; nil if the object was deleted.
func (s *store) put(r ref, object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at++
	if old := s.objects[r]; old != nil && old.object == nil {
		s.gone = slices.DeleteFunc(s.gone, func(g ref) bool { return g == r })
	}
	s.objects[r] = &version{r, s.at, object}
	if object == nil {
		s.gone = append(s.gone, r)
	}
	if len(s.gone) > mostGone {
		s.dropped = s.objects[s.gone[0]].at
		delete(s.objects, s.gone[0])
		s.gone = s.gone[1:]
	}
	s.wake()
}

// troubled records why something cannot be watched; empty: it can.
func (s *store) troubled(what, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble[what] == why {
		return
	}
	if s.trouble[what] = why; why == "" {
		delete(s.trouble, what)
	}
	s.wake()
}

// stale returns why what there is may be out of date; empty: it is not.
func (s *store) stale() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, why := range s.trouble {
		if strings.HasPrefix(why, noAnswer) {
			return "not up to date: " + noAnswer
		}
	}
	return ""
}

func (s *store) wake() {
	close(s.more)
	s.more = make(chan struct{})
}

// changes are what a page does not have yet.
type changes struct {
	of      []version // the oldest change first
	at      uint64    // what the page has then
	behind  bool      // too far: it must begin again
	trouble []string
	more    <-chan struct{} // closed at the next change
}

// since returns what has changed of a kind after a change; after 0, everything there is.
func (s *store) since(k kind, at uint64) changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := changes{at: s.at, behind: at > 0 && at < s.dropped || at > s.at, more: s.more}
	for _, v := range s.objects {
		if v.Kind == k && v.at > at && (v.object != nil || at > 0) {
			c.of = append(c.of, *v)
		}
	}
	slices.SortFunc(c.of, func(a, b version) int { return cmp.Compare(a.at, b.at) })
	for what, why := range s.trouble {
		c.trouble = append(c.trouble, what+": "+why)
	}
	slices.Sort(c.trouble)
	return c
}

// get returns an object, nil if there is none, and what is closed at the next change of anything.
func (s *store) get(r ref) (object any, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.objects[r]; v != nil {
		object = v.object
	}
	return object, s.more
}
