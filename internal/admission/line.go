package admission

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Waiter is an HTCJob that is to be sent.
type Waiter struct {
	Key, Namespace string
	Demand         // Jobs is 0: not known yet
	Priority       int32
	Created        time.Time
}

// before orders the HTCJobs of a namespace.
func before(a, b Waiter) int {
	return cmp.Or(-cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), cmp.Compare(a.Key, b.Key))
}

// line holds the HTCJobs that wait for a pool. Namespaces take turns: one that has been served goes to the end, and so
// does one that begins to wait. Within a namespace the highest priority comes first, then the oldest.
type line struct {
	turns   []string            // the namespaces that wait; the first is served next
	waiting map[string][]Waiter // of each namespace, in their order
	of      map[string]Waiter   // by key
}

// enter adds an HTCJob, or changes it.
func (l *line) enter(w Waiter) {
	if l.of == nil {
		l.waiting, l.of = map[string][]Waiter{}, map[string]Waiter{}
	}
	all := l.waiting[w.Namespace]
	if old, is := l.of[w.Key]; is {
		all = remove(all, old)
	} else if len(all) == 0 {
		l.turns = append(l.turns, w.Namespace)
	}
	i, _ := slices.BinarySearchFunc(all, w, before)
	l.waiting[w.Namespace] = slices.Insert(all, i, w)
	l.of[w.Key] = w
}

// leave removes an HTCJob. If others of its namespace wait, it keeps its turn.
func (l *line) leave(key string) {
	w, waits := l.of[key]
	if !waits {
		return
	}
	delete(l.of, key)
	if l.waiting[w.Namespace] = remove(l.waiting[w.Namespace], w); len(l.waiting[w.Namespace]) == 0 {
		delete(l.waiting, w.Namespace)
		l.turns = slices.DeleteFunc(l.turns, func(ns string) bool { return ns == w.Namespace })
	}
}

func remove(all []Waiter, w Waiter) []Waiter {
	i, _ := slices.BinarySearchFunc(all, w, before)
	return slices.Delete(all, i, i+1)
}

// serve removes an HTCJob whose namespace has had its turn.
func (l *line) serve(w Waiter) {
	l.leave(w.Key)
	if i := slices.Index(l.turns, w.Namespace); i >= 0 {
		l.turns = append(slices.Delete(l.turns, i, i+1), w.Namespace)
	}
}

// goBack puts an HTCJob that was served into its place again, and makes it its namespace's turn.
func (l *line) goBack(w Waiter) {
	l.enter(w)
	i := slices.Index(l.turns, w.Namespace)
	l.turns = slices.Insert(slices.Delete(l.turns, i, i+1), 0, w.Namespace)
}

// rank returns how many HTCJobs of its namespace come before one that waits.
func (l *line) rank(w Waiter) int {
	i, _ := slices.BinarySearchFunc(l.waiting[w.Namespace], w, before)
	return i
}

// place returns how many HTCJobs come before one that waits.
func (l *line) place(w Waiter) int {
	rank := l.rank(w)
	n, earlier := rank, 1
	for _, ns := range l.turns {
		if ns == w.Namespace {
			earlier = 0
			continue
		}
		n += min(len(l.waiting[ns]), rank+earlier)
	}
	return n
}

// inOrder yields all that wait in the order of their places.
func (l *line) inOrder() iter.Seq[Waiter] {
	return func(yield func(Waiter) bool) {
		for round, left := 0, len(l.of); left > 0; round++ {
			for _, ns := range l.turns {
				if all := l.waiting[ns]; round < len(all) {
					if left--; !yield(all[round]) {
						return
					}
				}
			}
		}
	}
}
