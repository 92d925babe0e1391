package reconciler

import (
	"context"
	"errors"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Shared is what the kinds have in common besides the ledger: at a schedd's limit one object of them all asks, not one
// of each kind.
type Shared struct {
	Answering *backend.Answering // HTCondor as all ask it
	Chooser   *backend.Chooser
	Several   *backend.Several
	Prover    *backend.Prover // of the accounts that open objects depend on
	Limits    backend.Limits
	Tries     recovery.Tries
	Absences  recovery.Absences
	Mirrors   func(schedd.Endpoint) crosscheck.Mirror // see crosscheck.Checker

	turned []func(endpoint schedd.Endpoint, answers bool)
	passed []func()
	depend []func(map[backend.Account]struct{})
	proved []func(map[backend.Account]bool)
}

// NewShared returns what the kinds share. most is the most that a schedd is asked; the zero value: no bound.
func NewShared(
	condor backend.Schedd, credentials backend.Credentials, book Ledger, most backend.Pace, now func() time.Time,
) *Shared {
	s := &Shared{}
	s.Answering = &backend.Answering{Schedd: condor, Now: now, Any: credentials.Any, Most: most, Queues: queues(book)}
	s.Answering.Turned = func(endpoint schedd.Endpoint, answers bool) {
		for _, turned := range s.turned {
			turned(endpoint, answers)
		}
	}
	s.Limits.Passed = func() {
		for _, passed := range s.passed {
			passed()
		}
	}
	s.Chooser = &backend.Chooser{Schedd: s.Answering, Credentials: credentials}
	s.Several = &backend.Several{
		Schedd: s.Answering, Credentials: credentials, Limits: &s.Limits, Open: backend.OpenJobs(book), Now: now,
	}
	s.Prover = &backend.Prover{Credentials: credentials, News: make(chan struct{}, 1)}
	s.Prover.Accounts = func() map[backend.Account]struct{} {
		all := map[backend.Account]struct{}{}
		for _, depend := range s.depend {
			depend(all)
		}
		return all
	}
	s.Prover.Turned = func(turned map[backend.Account]bool) {
		for _, proved := range s.proved {
			proved(turned)
		}
	}
	return s
}

// queues has the ledger remember with which queue each schedd answers: after a restart, too, another one is known as
// such.
func queues(book Ledger) func(context.Context, schedd.Endpoint, schedd.Queue) ([]schedd.Queue, error) {
	return func(ctx context.Context, at schedd.Endpoint, now schedd.Queue) (all []schedd.Queue, err error) {
		known := func(tx *ledger.Tx) (is bool, err error) {
			rows, err := tx.Queues(at.Collector, at.Schedd)
			all = make([]schedd.Queue, len(rows))
			// What is noted for later was noted while the clock was ahead.
			for i, q := range rows {
				all[i] = schedd.Queue(q)
				if i == 0 || !q.Since.After(now.Since) {
					is = q.Born == now.Born
				}
			}
			return is, err
		}
		is, err := ledger.Get(ctx, book, known)
		if err != nil || is {
			return all, err
		}
		err = book.Write(ctx, func(tx *ledger.Tx) error {
			if is, err := known(tx); err != nil || is {
				return err
			}
			all = append(all, now)
			return tx.AddQueue(at.Collector, at.Schedd, ledger.Queue(now))
		})
		if errors.Is(err, ledger.ErrReadOnly) { // nothing is done because of what is asked then
			return append(all, now), nil
		}
		return all, err
	}
}

// OnTurned has a function called when a schedd begins or stops answering. It is called before anything is asked.
func (s *Shared) OnTurned(turned func(endpoint schedd.Endpoint, answers bool)) {
	s.turned = append(s.turned, turned)
}

// OnPassed has a function called when a schedd has taken a submission.
func (s *Shared) OnPassed(passed func()) { s.passed = append(s.passed, passed) }
