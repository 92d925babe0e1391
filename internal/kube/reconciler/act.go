package reconciler

import (
	"cmp"
	"context"
	"errors"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/sending"
)

// Step is what is to be done next for an object in HTCondor.
type Step struct {
	Class   Class
	Orphans bool      // there are runs of another object of its name
	First   bool      // it submits an object that has no status yet
	Resumes bool      // it asks what became of a submission, which may also be under way
	Again   time.Time // when to decide again if nothing happens; zero: not at any time
	// Do does it, and returns the class of what follows at once; nil if there is nothing to do.
	Do func(ctx context.Context) (needs Class, err error)
}

// ActOne is act with its back-off; it reports what blocks an action to the user.
func (r *Reconciler[O, S, K]) ActOne(ctx context.Context, class Class, key string) {
	if !r.Actions.Claim(key, r.o.Now()) {
		return
	}
	needs, err := r.act(ctx, class, key)
	if errors.Is(err, inputs.ErrStopped) {
		needs, err = class, nil // what to do now is decided again
	}
	woken := r.o.Owned.Acted(key, err)
	r.Actions.Release(key)
	if needs != class && err == nil {
		r.Actions.Add(needs, key)
		return
	}
	defer r.Changed.Add(key)
	queue := r.Actions.Queues[class]
	if err == nil {
		r.Actions.Forget(key)
		r.Memory.Unblock(key, Acting)
		return
	}
	if pause, is := errors.AsType[*sending.Waiting](err); is {
		r.Actions.Forget(key)
		b := Blocked(pause.Condition, cmp.Or(pause.Reason, "AskingSchedd"), pause.Message)
		b.Class, b.Retry = class, r.o.Now().Add(pause.After)
		r.Memory.Wait(key, b)
		queue.AddAfter(key, pause.After)
		return
	}
	b, usual := Explain(err), false
	if input, is := errors.AsType[*inputs.Waiting](err); is {
		b = Blocked(v1alpha1.ConditionInputsReady, input.Reason, input.Message)
		if before := r.Memory.Of(key).Blockers[Acting]; before != nil && before.Message != b.Message {
			r.Actions.Forget(key) // somebody is mending it
		}
		// A ConfigMap is often made just after the object.
		early := input.Reason == inputs.ReasonConfigMapNotFound && queue.NumRequeues(key) == 0
		usual = input.Usual || early
	}
	after := min(FirstRetry<<min(r.Actions.Queues[class].NumRequeues(key), 10), LastRetry)
	pause, own := errors.AsType[*sending.Paused](err)
	switch {
	case own:
		after = pause.After
	case woken:
		after = LastRetry
	}
	b.Class, b.Retry = class, r.o.Now().Add(after)
	if usual {
		r.Memory.Wait(key, b)
	} else {
		r.Report(key, Acting, b, err, "not done yet")
	}
	switch {
	case woken:
	case own:
		queue.AddAfter(key, after)
	default:
		queue.AddRateLimited(key)
	}
}

// act decides again from the present ledger and does what needs HTCondor if it is of this class. Otherwise it
// does nothing and returns the class that is needed.
func (r *Reconciler[O, S, K]) act(ctx context.Context, class Class, key string) (needs Class, err error) {
	object := r.Get(key)
	var none O
	if object == none {
		if class != Deleting {
			return Deleting, nil
		}
		return class, r.sweep(ctx, key)
	}
	c, err := r.o.Kind.Gather(ctx, object)
	if err != nil {
		return class, err
	}
	next := c.Step()
	if next.Do != nil && next.Class != class {
		return next.Class, nil
	}
	if next.Orphans {
		// A deletion does not wait for an administrator's decision about another object of the same name.
		if err := r.sweep(ctx, key); err != nil && !(orphans.IsKept(err) && next.Class == Deleting) {
			return class, err
		}
	}
	if next.Do == nil {
		return class, nil
	}
	return next.Do(ctx)
}

// sweep removes what is left of objects that are gone but still have rows in the ledger.
func (r *Reconciler[O, S, K]) sweep(ctx context.Context, key string) error {
	runs, err := r.Runs(ctx, key)
	if err != nil {
		return err
	}
	return r.Orphans.Sweep(ctx, key, runs, r.o.Owned.Owner())
}
