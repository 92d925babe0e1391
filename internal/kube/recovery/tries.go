package recovery

import (
	"errors"
	"maps"
	"regexp"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// lastTry is the longest pause between two submissions that fail with the same message.
const (
	firstRetry = time.Second
	lastTry    = 5 * time.Minute
)

// Tries remembers the results of submissions of open intents. Memory is enough: a restarted htcd asks the schedd.
type Tries struct {
	mu sync.Mutex
	m  map[Key]Try
}

// Key identifies an attempt.
type Key struct {
	UID     string
	Attempt int
}

// Try is what is known about the submissions of one open intent.
type Try struct {
	Ended  time.Time // when the newest submission ended, whatever its result
	Since  string    // the last job to leave the queue before the newest submission; empty: not known
	Unsent bool      // the newest submission certainly left nothing at the schedd
	words  string    // message of the newest failure, without its numbers
	Alike  int       // how often in a row it failed with that message
}

// KeyOf returns the key of a run.
func KeyOf(run ledger.Run) Key { return Key{run.UID, run.Attempt} }

// Get returns what is known about a run.
func (t *Tries) Get(run ledger.Run) Try {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.m[KeyOf(run)]
}

// Begin is called before a submission.
func (t *Tries) Begin(run ledger.Run, since string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[Key]Try{}
	}
	now := t.m[KeyOf(run)]
	now.Since, now.Unsent = since, false
	t.m[KeyOf(run)] = now
}

// End is called after a submission.
func (t *Tries) End(run ledger.Run, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.m[KeyOf(run)]
	now.Ended = at
	t.m[KeyOf(run)] = now
}

// Unstaged records that a submission failed before it began, so there is nothing to look for.
func (t *Tries) Unstaged(run ledger.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[Key]Try{}
	}
	now := t.m[KeyOf(run)]
	now.Unsent = true
	t.m[KeyOf(run)] = now
}

// Failed records a failed submission and returns what is known now.
func (t *Tries) Failed(run ledger.Run, err error) Try {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, words := t.m[KeyOf(run)], Numbers.ReplaceAllString(err.Error(), "#")
	if now.words != words {
		now.words, now.Alike = words, 0
	}
	now.Alike++
	now.Unsent = unsent(err)
	t.m[KeyOf(run)] = now
	return now
}

// Clear forgets a run: it was sent, refused or withdrawn.
func (t *Tries) Clear(run ledger.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, KeyOf(run))
}

// Forget forgets all runs of an HTCJob.
func (t *Tries) Forget(uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.m, func(key Key, _ Try) bool { return key.UID == uid })
}

// Numbers matches what may differ between two messages that mean the same.
var Numbers = regexp.MustCompile(`[0-9]+`)

// unsent reports whether a failure is the schedd's own statement that it accepted nothing, so there is nothing to look
// for.
func unsent(err error) bool {
	e, ok := errors.AsType[*condor.Error](err)
	if !ok || e.ExitCode < 0 || e.Cluster != nil {
		return false
	}
	return e.AtCommit || e.Kind == condor.Limit || e.Kind == condor.NotAuthorised
}

// Pause returns how long to wait before the next submission; it grows with every failure with the same message.
func (t Try) Pause() time.Duration { return min(firstRetry<<min(t.Alike-1, 10), lastTry) }
