package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
)

// answering is a Schedd that takes note of which places answer. A command that got no answer proves little: its size is the
// user's, and so is much of what a tool prints. So the place is then asked a small question of our own, and that decides.
type answering struct {
	Schedd
	backends *backends
	now      func() time.Time
	any      func(context.Context) (schedd.Identity, error)
	turned   func(place schedd.Place, answers bool) // hears when a place begins or ceases to answer

	asking singleflight.Group // at most one question at a time for each identity
}

// about runs a command at a place. A place that did not answer last time is asked the small question before it, so that an
// outage costs each HTCJob one short deadline instead of a long one.
func (a *answering) about(ctx context.Context, id schedd.Identity, command func() error) error {
	if a.backends.state(id.Place).down {
		if err := a.Answers(ctx, id); err != nil {
			return err
		}
	}
	err := command()
	switch {
	case err == nil:
		a.note(id.Place, nil)
	case unanswered(err) && ctx.Err() == nil:
		if silence := a.Answers(ctx, id); silent(silence) {
			return silence // it says better what is wrong
		}
	}
	return err
}

// Answers asks the small question and takes note of the answer.
func (a *answering) Answers(ctx context.Context, id schedd.Identity) error {
	_, err, _ := a.asking.Do(fmt.Sprintf("%q", []string{id.Place.Collector, id.Place.Schedd, id.CCache, id.Tokens}), func() (any, error) {
		return nil, a.question(ctx, id)
	})
	switch {
	case err == nil:
		a.note(id.Place, nil)
	case silent(err) && ctx.Err() == nil:
		a.note(id.Place, err)
		return &placed{id.Place, err}
	}
	return err
}

// silent reports whether an answer to the small question is none. To be turned away is one.
func silent(err error) bool {
	kind := schedd.KindOf(err)
	return err != nil && kind != schedd.Credentials && kind != schedd.NotAuthorised
}

// question is asked as an account that works elsewhere first: that of one namespace must not make a place seem away for all.
func (a *answering) question(ctx context.Context, id schedd.Identity) error {
	other, err := a.any(ctx)
	other.Place = id.Place
	if err == nil && other != id && a.Schedd.Answers(ctx, other) == nil {
		return nil
	}
	return a.Schedd.Answers(ctx, id)
}

func (a *answering) note(place schedd.Place, err error) {
	if a.backends.note(place, err, a.now()) {
		a.turned(place, err == nil)
	}
}

// unanswered reports whether an error may mean that nobody answers. Any other error is an answer, or trouble on this side.
func unanswered(err error) bool {
	kind := schedd.KindOf(err)
	return err != nil && (kind == schedd.Unreachable || kind == schedd.Timeout)
}

// Submit implements Schedd, as do those below.
func (a *answering) Submit(ctx context.Context, id schedd.Identity, dir string) (cluster schedd.Cluster, err error) {
	err = a.about(ctx, id, func() error {
		cluster, err = a.Schedd.Submit(ctx, id, dir)
		return err
	})
	return cluster, err
}

func (a *answering) Queue(ctx context.Context, id schedd.Identity, constraint string, fn func(schedd.Job) error) error {
	return a.about(ctx, id, func() error { return a.Schedd.Queue(ctx, id, constraint, fn) })
}

func (a *answering) History(ctx context.Context, id schedd.Identity, constraint string, b schedd.HistoryBounds, fn func(schedd.Job) error) error {
	return a.about(ctx, id, func() error { return a.Schedd.History(ctx, id, constraint, b, fn) })
}

func (a *answering) Remove(ctx context.Context, id schedd.Identity, constraint, reason string) error {
	return a.about(ctx, id, func() error { return a.Schedd.Remove(ctx, id, constraint, reason) })
}

// ScheddName asks no schedd, but the site's command or HTCondor's configuration, which no user has a part in.
func (a *answering) ScheddName(ctx context.Context, id schedd.Identity) (string, error) {
	name, err := a.Schedd.ScheddName(ctx, id)
	switch {
	case err == nil:
		a.note(id.Place, nil)
		a.backends.named(schedd.Place{Collector: id.Place.Collector, Schedd: name})
	case unanswered(err) && ctx.Err() == nil:
		a.note(id.Place, err)
		err = &placed{id.Place, err}
	}
	return name, err
}

func (a *answering) Account(ctx context.Context, id schedd.Identity) (account string, err error) {
	err = a.about(ctx, id, func() error {
		account, err = a.Schedd.Account(ctx, id)
		return err
	})
	return account, err
}

func (a *answering) Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error {
	return a.about(ctx, id, func() error { return a.Schedd.Transfer(ctx, id, procs, dir) })
}

func (a *answering) Release(ctx context.Context, id schedd.Identity, procs schedd.Procs) error {
	return a.about(ctx, id, func() error { return a.Schedd.Release(ctx, id, procs) })
}

// placed is an error that comes of a place which does not answer.
type placed struct {
	place schedd.Place
	error
}

func (p *placed) Unwrap() error { return p.error }

// backends remembers of every place whether it answered when it was last asked.
type backends struct {
	mu sync.Mutex
	m  map[schedd.Place]reachability
}

type reachability struct {
	asked    bool
	at       time.Time
	answered time.Time // when it did so last; zero: never
	usual    bool      // at some time the site's own choice
	down     bool
	reason   string
	message  string
}

// note takes down that a place answered, or why not, and reports whether that is new.
func (b *backends) note(place schedd.Place, err error, at time.Time) (changed bool) {
	now := reachability{asked: true, at: at, answered: at, reason: "Answered", message: "the schedd answered when last asked"}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil {
		b.m = map[schedd.Place]reachability{}
	}
	before := b.m[place]
	now.usual = before.usual
	if err != nil {
		now.down, now.answered = true, before.answered
		now.reason, now.message = schedd.KindOf(err).String(), fmt.Sprintf("%v; %s", err, lastAnswer(before.answered))
	}
	b.m[place] = now
	return !before.asked || before.down != now.down
}

// lastAnswer tells a schedd that has ceased to answer from one that was perhaps never there.
func lastAnswer(at time.Time) string {
	if at.IsZero() {
		return "it has not answered since htcd began"
	}
	return "it answered last at " + at.UTC().Format(time.RFC3339)
}

// named takes down that the site itself sends jobs to a place.
func (b *backends) named(place schedd.Place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil {
		b.m = map[schedd.Place]reachability{}
	}
	now := b.m[place]
	now.usual = true
	b.m[place] = now
}

// answers reports whether the place is known to have answered when it was last asked.
func (b *backends) answers(place schedd.Place) bool {
	s := b.state(place)
	return s.asked && !s.down
}

func (b *backends) state(place schedd.Place) reachability {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.m[place]
}

// placeTurned queues every HTCJob that may depend on a place.
func (c *Controller) placeTurned(place schedd.Place, answers bool) {
	if answers {
		// Who did not even learn which schedd to ask may learn it now.
		c.retryNow(func(t blocker) bool {
			return t.condition == v1alpha1.ConditionBackendReachable && (t.place == place || t.place == schedd.Place{})
		})
	}
	c.wakeAll()
}
