package crosscheck

import (
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/backend"
)

// The kinds of passes.
const (
	crosschecking = "cross-check"
	refreshing    = "refresh"
)

// Passes lists the kinds of passes.
var Passes = []string{crosschecking, refreshing}

// share limits refreshes to 1/share of the time, so that a slow schedd is not asked all the time.
const share = 20

// gate separates passes over one target: no pass begins while another of its kind runs, and a slow refresh is not repeated at
// once. It also remembers how far each target's history has been read. The zero value is ready to use.
type gate struct {
	mu     sync.Mutex
	passes map[passKey]lastPass
	marks  map[backend.Target]mark
}

type passKey struct {
	kind   string
	target backend.Target
}

type lastPass struct {
	running bool
	next    time.Time
}

// begin reports whether a pass may begin; if so, the caller calls end when it is over.
func (g *gate) begin(kind string, t backend.Target, now func() time.Time) (end func(), may bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, began := passKey{kind, t}, now()
	if last := g.passes[key]; last.running || kind == refreshing && began.Before(last.next) {
		return nil, false
	}
	if g.passes == nil {
		g.passes = map[passKey]lastPass{}
	}
	g.passes[key] = lastPass{running: true}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		ended := now()
		g.passes[key] = lastPass{next: ended.Add(share * ended.Sub(began))}
	}, true
}

// mark is the newest entry of the history at some time; jobs that leave the queue later come after it.
type mark struct {
	newest string
	at     time.Time
}

func (g *gate) mark(t backend.Target) mark {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.marks[t]
}

func (g *gate) setMark(t backend.Target, m mark) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.marks == nil {
		g.marks = map[backend.Target]mark{}
	}
	g.marks[t] = m
}
