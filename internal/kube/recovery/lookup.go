package recovery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// An outage of the schedd, or a killed htcd, leaves an open intent for every HTCJob whose submission it interrupted.
// Each must be looked up twice before it is sent again. One by one, hundreds of them would take minutes, and an htcd
// that is killed every few seconds would never finish. So one query looks for all of them.

// mostLookedFor is the maximum number of attempts in one query: the constraint names each of them in some 40 bytes.
const mostLookedFor = 500

// Ledger is where intents are read from.
type Ledger = ledger.Readable

// lookup is the result of one query of queue and history for some attempts.
type lookup struct {
	began time.Time
	trace map[Key]bool // for every attempt looked for: whether there is any trace
}

// Lookups runs such queries and keeps the newest result of each target. It is safe for concurrent use; its fields are
// set before its first use.
type Lookups struct {
	Ledger Ledger
	Schedd crosscheck.Schedd
	// As returns the identity, with the endpoint, used to query the runs of a target.
	As    func(ctx context.Context, t backend.Target) (schedd.Identity, error)
	Tries *Tries
	Now   func() time.Time

	asking singleflight.Group

	mu sync.Mutex
	m  map[backend.Target]lookup
}

func (l *Lookups) get(t backend.Target) lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m[t]
}

func (l *Lookups) set(t backend.Target, found lookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[backend.Target]lookup{}
	}
	l.m[t] = found
}

// NoTrace reports whether HTCondor has no trace of an attempt, and when it was asked, from a query for all open intents
// of its target that began after the given time. False may also mean that there is no other open intent at the target,
// or that there was no such answer: then the attempt is looked for on its own.
func (l *Lookups) NoTrace(ctx context.Context, run ledger.Run, after time.Time) (asked time.Time, is bool, err error) {
	t := backend.TargetOf(run).Shared()
	for range 2 { // the first result may be of a query that began earlier
		if found := l.get(t); found.began.After(after) {
			if trace, looked := found.trace[KeyOf(run)]; looked {
				return found.began, !trace, nil
			}
		}
		runs, err := l.openIntents(ctx, t, run)
		if err != nil || len(runs) < 2 {
			return time.Time{}, false, err
		}
		_, err, _ = l.asking.Do(fmt.Sprintf("%q", t), func() (any, error) { return nil, l.lookFor(ctx, t, runs) })
		if err != nil {
			return time.Time{}, false, err
		}
	}
	return time.Time{}, false, nil
}

// openIntents lists the attempts to look for at a target: the given one and others.
func (l *Lookups) openIntents(ctx context.Context, t backend.Target, run ledger.Run) (runs []ledger.Run, err error) {
	runs, err = ledger.Get(ctx, l.Ledger, func(tx *ledger.Tx) ([]ledger.Run, error) {
		return tx.Runs(ledger.RunFilter{Kind: run.Kind, State: ledger.Intent})
	})
	runs = slices.DeleteFunc(runs, func(r ledger.Run) bool {
		return backend.TargetOf(r).Shared() != t || r.Restored || KeyOf(r) == KeyOf(run)
	})
	return append(runs[:min(len(runs), mostLookedFor-1)], run), err
}

// lookFor queries queue and history for attempts and keeps the result.
func (l *Lookups) lookFor(ctx context.Context, t backend.Target, runs []ledger.Run) error {
	id, err := l.As(ctx, t)
	if err != nil {
		return err
	}
	found := lookup{began: l.Now(), trace: make(map[Key]bool, len(runs))}
	uids, since := make([]string, len(runs)), l.Tries.Get(runs[0]).Since
	for i, run := range runs {
		uids[i] = run.UID
		found.trace[KeyOf(run)] = false
		if l.Tries.Get(run).Since != since {
			since = "" // all of the history is read
		}
	}
	these := condor.UIDsConstraint(uids...)
	hear := func(j condor.Job) error {
		if j.Status == condor.Removed && !j.Reasoned {
			return schedd.ErrReasons
		}
		if key := (Key{j.Tag.UID, j.Tag.Attempt}); j.Unread {
			found.doubt() // the unreadable part may be the tag
		} else if _, looked := found.trace[key]; looked && !crosscheck.NeverRan(j) {
			found.trace[key] = true
		}
		return nil
	}
	if err := l.Schedd.Query(ctx, id, schedd.Query{Where: these}, hear); err != nil {
		return err
	}
	gone := schedd.Query{Where: these, Left: &schedd.HistoryBounds{Since: since}}
	if err := l.Schedd.Query(ctx, id, gone, hear); err != nil {
		return err
	}
	l.set(t, found)
	return nil
}

// doubt marks all attempts as possibly there, so that each is looked for on its own.
func (l lookup) doubt() {
	for key := range l.trace {
		l.trace[key] = true
	}
}
