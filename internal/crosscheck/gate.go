package crosscheck

import (
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// The kinds of passes.
const (
	Crosschecking  = "cross-check"
	Refreshing     = "refresh"
	LookingForLost = "lost"
)

// Passes lists the kinds of passes.
var Passes = []string{Crosschecking, Refreshing, LookingForLost, Hinted}

// share limits refreshes to 1/share of the time, so that a slow schedd is not asked all the time.
const share = 20

// Gate separates passes over one target: no pass begins while another of its kind runs, and a slow refresh is not
// repeated at once. It also remembers how far each target's history has been read. The zero value is ready to use.
type Gate struct {
	mu     sync.Mutex
	passes map[passKey]lastPass
	known  map[backend.Target]known
}

// known is what is known of a target.
type known struct {
	mark     Mark
	coverage Coverage
	daemon   schedd.Daemon
	looked   looked // for what was called lost
}

func (g *Gate) of(t backend.Target) known {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[t]
}

func (g *Gate) change(t backend.Target, f func(*known)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.known[t]
	f(&now)
	if g.known == nil {
		g.known = map[backend.Target]known{}
	}
	g.known[t] = now
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
func (g *Gate) begin(kind string, t backend.Target, now func() time.Time) (end func(), may bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, began := passKey{kind, t}, now()
	if last := g.passes[key]; last.running || kind == Refreshing && began.Before(last.next) {
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

// Mark is the newest entry of the history at some time; jobs that leave the queue later come after it.
type Mark struct {
	Newest string
	At     time.Time
}

// Started returns when a target's schedd had been started, as the latest pass has learned it; 0: unknown.
func (g *Gate) Started(t backend.Target) int64 { return g.of(t).coverage.Started }

// Mark returns that of a target.
func (g *Gate) Mark(t backend.Target) Mark { return g.of(t).mark }

// SetMark replaces it.
func (g *Gate) SetMark(t backend.Target, m Mark) { g.change(t, func(k *known) { k.mark = m }) }

// Coverage returns that of a target.
func (g *Gate) Coverage(t backend.Target) Coverage { return g.of(t).coverage }

// Cover adds what a pass has established.
func (g *Gate) Cover(t backend.Target, pass Coverage) {
	g.change(t, func(k *known) { k.coverage = k.coverage.After(pass) })
}

// Daemon returns what a target's schedd was last known to be.
func (g *Gate) Daemon(t backend.Target) schedd.Daemon { return g.of(t).daemon }
