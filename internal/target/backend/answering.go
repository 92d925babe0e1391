package backend

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Answering is a Schedd that records which endpoints answer. A command without an answer proves little: users determine
// its size and much of what a tool prints. So htcd then asks the endpoint a small question of its own, and that
// decides. Set its fields before its first use.
type Answering struct {
	Schedd
	Now func() time.Time
	// Any returns an identity that works for an endpoint.
	Any func(context.Context, schedd.Endpoint) (schedd.Identity, error)
	// Turned is called when an endpoint begins or stops answering.
	Turned func(endpoint schedd.Endpoint, answers bool)

	// Queues, if set, remembers with which queue an endpoint answers now, and returns those it has answered with.
	Queues func(context.Context, schedd.Endpoint, schedd.Queue) ([]schedd.Queue, error)

	// Most is the most that a schedd is asked; the zero value: no bound.
	Most Pace

	reachable reachable
	limiters  limiters
	asking    singleflight.Group // at most one question at a time per identity
}

// State returns what is known of an endpoint.
func (a *Answering) State(endpoint schedd.Endpoint) Reachability {
	r := a.reachable.get(endpoint)
	r.Missing, r.Doubt = a.reachable.missed(endpoint, a.Now())
	return r
}

// Missing records that so many jobs of a kind and target are missing, and why they are not called lost; 0: none is.
func (a *Answering) Missing(kind string, t Target, jobs int, doubt string) {
	a.reachable.miss(awayOf{kind, t}, away{a.Now(), jobs, doubt})
}

// Known returns what is known of every endpoint asked so far. One that never answered may be a user's typo.
func (a *Answering) Known() map[schedd.Endpoint]Reachability {
	all := a.reachable.all()
	for endpoint, r := range all {
		r.Pace, r.Slowed = a.limiters.of(endpoint, a.Most).now()
		r.Missing, r.Doubt = a.reachable.missed(endpoint, a.Now())
		all[endpoint] = r
	}
	return all
}

// about runs a command at an endpoint. An endpoint that did not answer last time is first asked the small question, so
// that an outage costs each HTCJob a short deadline instead of a long one.
func (a *Answering) about(ctx context.Context, id schedd.Identity, command func() error) error {
	return a.inTurn(ctx, id, false, command)
}

// inTurn is about for a command that may take long, or not.
func (a *Answering) inTurn(ctx context.Context, id schedd.Identity, long bool, command func() error) error {
	limiter := a.limiters.of(id.Endpoint, a.Most)
	if a.Most != (Pace{}) {
		if err := limiter.enter(ctx, long); err != nil {
			return err
		}
		defer limiter.leave(long)
	}
	if a.State(id.Endpoint).Down {
		if err := a.answers(ctx, id); err != nil {
			return err
		}
	}
	err := command()
	switch {
	case err == nil:
		a.note(id.Endpoint, nil)
	case unanswered(err) && ctx.Err() == nil:
		if again := a.answers(ctx, id); silent(again) {
			return again // it explains the failure better
		}
		if condor.KindOf(err) == condor.Timeout && !long {
			limiter.killed()
		}
	}
	return err
}

// answers asks the small question and records the answer. Callers share it, so it goes on when the one that began it is
// cancelled.
func (a *Answering) answers(ctx context.Context, id schedd.Identity) error {
	asked := a.asking.DoChan(fmt.Sprintf("%q", id), func() (any, error) {
		return nil, a.question(context.WithoutCancel(ctx), id)
	})
	var err error
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-asked:
		err = answer.Err
	}
	switch {
	case err == nil:
		a.note(id.Endpoint, nil)
	case silent(err):
		a.note(id.Endpoint, err)
		return &silence{id.Endpoint, err}
	default:
		a.reachable.refused(id.Endpoint, err, a.Now())
	}
	return err
}

// silent reports whether the small question got no answer. A refusal is an answer.
func silent(err error) bool {
	kind := condor.KindOf(err)
	return err != nil && kind != condor.Credentials && kind != condor.NotAuthorised
}

// question first asks as an account that works elsewhere: one namespace's account must not make an endpoint seem down
// for all.
func (a *Answering) question(ctx context.Context, id schedd.Identity) error {
	other, err := a.Any(ctx, id.Endpoint)
	if err == nil && other != id {
		if _, err := a.Schedd.Ping(ctx, other, schedd.Reading); err == nil {
			return nil
		}
	}
	_, err = a.Schedd.Ping(ctx, id, schedd.Reading)
	return err
}

func (a *Answering) note(endpoint schedd.Endpoint, err error) {
	if a.reachable.note(endpoint, err, a.Now()) {
		a.Turned(endpoint, err == nil)
	}
}

// unanswered reports whether an error may mean that nobody answers. Any other error is an answer or a local problem.
func unanswered(err error) bool {
	kind := condor.KindOf(err)
	return err != nil && (kind == condor.Unreachable || kind == condor.Timeout)
}

// Submit implements Schedd, as do the methods below.
func (a *Answering) Submit(ctx context.Context, id schedd.Identity, dir string) (cluster condor.Cluster, err error) {
	err = a.inTurn(ctx, id, true, func() error {
		cluster, err = a.Schedd.Submit(ctx, id, dir)
		return err
	})
	return cluster, err
}

// Query has those that read a history wait for each other before they take a place: a reading takes seconds, and others
// that only wait would leave no place to anybody else, and seem to be slow answers.
func (a *Answering) Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error {
	if q.Left != nil {
		end, err := a.limiters.of(id.Endpoint, a.Most).readHistory(ctx)
		if err != nil {
			return err
		}
		defer end()
	}
	return a.about(ctx, id, func() error {
		began := a.Now()
		err := a.Schedd.Query(ctx, id, q, fn)
		if err == nil && q.Left != nil && q.Left.Limit == 1 {
			a.limiters.of(id.Endpoint, a.Most).answered(a.Now().Sub(began))
		}
		return err
	})
}

func (a *Answering) Change(ctx context.Context, id schedd.Identity, c schedd.Change) (o schedd.Outcome, err error) {
	err = a.about(ctx, id, func() error { o, err = a.Schedd.Change(ctx, id, c); return err })
	return o, err
}

// ScheddName asks no schedd, but the site's command or HTCondor's configuration, which no user can influence.
func (a *Answering) ScheddName(ctx context.Context, id schedd.Identity) (string, error) {
	name, err := a.Schedd.ScheddName(ctx, id)
	switch {
	case err == nil:
		a.note(id.Endpoint, nil)
		a.reachable.named(schedd.Endpoint{Collector: id.Endpoint.Collector, Schedd: name})
	case unanswered(err) && ctx.Err() == nil:
		a.note(id.Endpoint, err)
		err = &silence{id.Endpoint, err}
	}
	return name, err
}

// Daemon asks the collector, and adapts the pace at which the schedd is asked.
func (a *Answering) Daemon(ctx context.Context, id schedd.Identity) (schedd.Daemon, error) {
	d, err := a.Schedd.Daemon(ctx, id)
	if err == nil && a.Most != (Pace{}) {
		a.limiters.of(id.Endpoint, a.Most).learn(a.Most, d)
	}
	if err == nil && a.Queues != nil && d.QueueBorn != 0 && id.Endpoint.Schedd != "" {
		d.Queues, err = a.Queues(ctx, id.Endpoint, schedd.Queue{Born: d.QueueBorn, Since: a.Now()})
	}
	return d, err
}

func (a *Answering) Ping(ctx context.Context, id schedd.Identity, p schedd.Permission) (account string, err error) {
	if p == schedd.Reading {
		return "", a.answers(ctx, id)
	}
	err = a.about(ctx, id, func() error {
		account, err = a.Schedd.Ping(ctx, id, p)
		return err
	})
	return account, err
}

func (a *Answering) Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error {
	return a.inTurn(ctx, id, true, func() error { return a.Schedd.Transfer(ctx, id, procs, dir) })
}

// silence is the error of an endpoint that does not answer.
type silence struct {
	endpoint schedd.Endpoint
	error
}

func (s *silence) Unwrap() error { return s.error }
