package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

const (
	// lastTry bounds the pause between two submissions that fail with the same words.
	lastTry = 5 * time.Minute
	// mostAlike is how often an attempt is sent that fails with the same words: for some eight hours, in which an administrator
	// can mend what is broken for all.
	mostAlike = 100
)

// tries remembers what the submissions of open intents have shown. Memory is enough: a restarted htcd asks the schedd.
type tries struct {
	mu sync.Mutex
	m  map[tryKey]try
}

type tryKey struct {
	uid     string
	attempt int
}

type try struct {
	ended  time.Time // when the newest submission had ended, however
	since  string    // the job that had left the queue last before the newest submission; empty: not known
	unsent bool      // the newest submission ended by saying that the schedd took nothing
	words  string    // of the newest failure, without its numbers
	alike  int       // how often in a row it failed with them
}

func tryOf(run ledger.Run) tryKey { return tryKey{run.UID, run.Attempt} }

func (t *tries) get(run ledger.Run) try {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.m[tryOf(run)]
}

// begin is called before a submission.
func (t *tries) begin(run ledger.Run, since string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[tryKey]try{}
	}
	now := t.m[tryOf(run)]
	now.since, now.unsent = since, false
	t.m[tryOf(run)] = now
}

// end is called after it.
func (t *tries) end(run ledger.Run, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.m[tryOf(run)]
	now.ended = at
	t.m[tryOf(run)] = now
}

// unstaged takes note that a submission has failed before it began: there is nothing of it to be looked for.
func (t *tries) unstaged(run ledger.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[tryKey]try{}
	}
	now := t.m[tryOf(run)]
	now.unsent = true
	t.m[tryOf(run)] = now
}

// failed takes note of a failed submission and returns what is known now.
func (t *tries) failed(run ledger.Run, err error) try {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, words := t.m[tryOf(run)], numbers.ReplaceAllString(err.Error(), "#")
	if now.words != words {
		now.words, now.alike = words, 0
	}
	now.alike++
	now.unsent = unsent(err)
	t.m[tryOf(run)] = now
	return now
}

func (t *tries) clear(run ledger.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, tryOf(run))
}

func (t *tries) forget(uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.m, func(key tryKey, _ try) bool { return key.uid == uid })
}

var numbers = regexp.MustCompile(`[0-9]+`)

// unsent reports whether a failure is the schedd's own word that it took nothing, so that nobody needs to look for it.
func unsent(err error) bool {
	e, ok := errors.AsType[*schedd.Error](err)
	if !ok || e.ExitCode < 0 || e.Cluster != nil {
		return false
	}
	return e.AtCommit || e.Kind == schedd.Limit || e.Kind == schedd.NotAuthorised
}

// paused is an error after which the next try has a time of its own.
type paused struct {
	after time.Duration
	error
}

func (p *paused) Unwrap() error { return p.error }

// pause grows with every failure of the same words.
func (t try) pause() time.Duration { return min(firstRetry<<min(t.alike-1, 10), lastTry) }

// unsuccessful decides what a failed submission means. A refusal is final. So is any other word of the schedd's that was heard often
// enough, unless it speaks of what others have done or can mend.
func (c *Controller) unsuccessful(id schedd.Identity, run ledger.Run, err error) error {
	t := c.tries.failed(run, err)
	e, own := errors.AsType[*schedd.Error](err)
	switch {
	case schedd.KindOf(err) == schedd.Limit:
		c.limits.Met(id, err, c.Now())
	case own && e.Kind == schedd.Unknown && e.ExitCode > 0 && e.Cluster == nil && t.alike >= mostAlike:
		return &schedd.Error{Kind: schedd.Refused, Stderr: fmt.Sprintf("condor_submit failed %d times with the same words: %v", t.alike, err)}
	}
	return &paused{t.pause(), fmt.Errorf("submit: %w", err)}
}

// since is the job that has left the queue last, so that the history is not read beyond it when a submission that begins now is
// looked for; empty: not known. It is asked for only when there is something to look for.
func (c *Controller) since(ctx context.Context, id schedd.Identity, run ledger.Run) string {
	newest := c.crosscheck.NewestKnown(backend.TargetOf(run))
	if t := c.tries.get(run); newest == "" && t.alike > 0 && !t.unsent {
		newest, _ = c.crosscheck.NewestHistory(ctx, id) // without it all is read
	}
	return newest
}
