package kube

import (
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/backend"
)

// passes keeps the passes over the groups apart: one that is still running is not joined by another of its kind, and a
// slow one does not come again at once.
type passes struct {
	mu    sync.Mutex
	begun map[passKey]turn
	marks map[backend.Target]mark
}

type passKey struct {
	kind   string
	target backend.Target
}

type turn struct {
	running bool
	next    time.Time
}

// The kinds of passes.
const (
	crosschecking = "cross-check"
	refreshing    = "refresh"
)

// Passes lists them.
var Passes = []string{crosschecking, refreshing}

// share is how much of the time passes of one kind may take: a slow schedd is not asked all the time.
const share = 20

// begin tells whether a pass may begin; whoever was told so calls end when it is through.
func (p *passes) begin(kind string, t backend.Target, now func() time.Time) (end func(), may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, began := passKey{kind, t}, now()
	if t := p.begun[key]; t.running || kind == refreshing && began.Before(t.next) {
		return nil, false
	}
	if p.begun == nil {
		p.begun = map[passKey]turn{}
	}
	p.begun[key] = turn{running: true}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		ended := now()
		p.begun[key] = turn{next: ended.Add(share * ended.Sub(began))}
	}, true
}

// mark is the newest entry of the history at some time: what left the queue later stands before it.
type mark struct {
	newest string
	at     time.Time
}

func (p *passes) mark(t backend.Target) mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marks[t]
}

func (p *passes) setMark(t backend.Target, m mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.marks == nil {
		p.marks = map[backend.Target]mark{}
	}
	p.marks[t] = m
}
