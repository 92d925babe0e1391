package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// fence guards everything that a leader must not do once another may lead. A leader that was asleep (a frozen
// container, a machine without CPU) wakes up in the middle of its work, and learns from the election only when its next
// attempt to renew has failed, seconds later. By then another htcd may have found an open intent, asked
// the schedd twice, and sent it. So every transaction and every command that changes something in HTCondor checks the
// Lease itself, and the first to find it too old ends the process.
type fence struct {
	sure func() error
	lost chan struct{} // closed when somebody was turned back
	once sync.Once
}

func newFence(sure func() error) *fence { return &fence{sure: sure, lost: make(chan struct{})} }

func (f *fence) check() error {
	err := f.sure()
	if err != nil {
		f.once.Do(func() { close(f.lost) })
	}
	return err
}

// fencedLedger checks inside the transaction: a process that falls asleep after that holds the file's lock, so that
// nobody can have written anything else when it wakes up and commits.
type fencedLedger struct {
	reconciler.Ledger
	fence *fence
}

func (l fencedLedger) Write(ctx context.Context, fn func(*ledger.Tx) error) error {
	return l.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := l.fence.check(); err != nil {
			return err
		}
		return fn(tx)
	})
}

// fencedSchedd changes nothing in HTCondor without being sure of the Lease; questions are always allowed. What remains
// is the time from this check to the command's connection: the process would have to fall asleep within these
// milliseconds, for longer than the Lease lasts.
type fencedSchedd struct {
	backend.Schedd
	fence *fence
}

func (f fencedSchedd) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	if err := f.fence.check(); err != nil {
		return condor.Cluster{}, err
	}
	return f.Schedd.Submit(ctx, id, dir)
}

func (f fencedSchedd) Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error) {
	if err := f.fence.check(); err != nil {
		return schedd.Outcome{}, err
	}
	return f.Schedd.Change(ctx, id, c)
}

func (f fencedSchedd) Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error {
	if err := f.fence.check(); err != nil {
		return err
	}
	return f.Schedd.Transfer(ctx, id, procs, dir)
}

var errUnsure = errors.New("nothing was done: the lease has not been renewed for too long, another htcd may be at work")

// sureOf reports whether the Lease was renewed so recently that nobody else can have it.
func sureOf(leads func() bool, renewed *renewals, renewDeadline time.Duration) func() error {
	return func() error {
		if !leads() || renewed.age() > renewDeadline {
			return errUnsure
		}
		return nil
	}
}
