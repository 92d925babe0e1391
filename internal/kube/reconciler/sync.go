package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/ledger"
)

// SyncOne is Sync with its back-off.
func (r *Reconciler[O, S, K]) SyncOne(ctx context.Context, key string) {
	r.syncFrom(ctx, r.Changed, key)
}

// SyncEnded is SyncOne for an object that has ended.
func (r *Reconciler[O, S, K]) SyncEnded(ctx context.Context, key string) {
	r.ending.Add(1)
	defer r.ending.Add(-1)
	r.syncFrom(ctx, r.Ended, key)
}

func (r *Reconciler[O, S, K]) syncFrom(ctx context.Context, queue fairqueue.Queue, key string) {
	err := r.Sync(ctx, key)
	if err == nil {
		queue.Forget(key)
		r.Memory.Written(key)
		return
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		level := zerolog.DebugLevel
		if r.Memory.NotWritten(key, err) {
			level = zerolog.WarnLevel
		}
		r.o.Log.WithLevel(level).Err(err).Str(r.o.Label, key).Msg("status not written, trying again")
	}
	queue.AddRateLimited(key)
}

// Sync looks at the object of a key.
func (r *Reconciler[O, S, K]) Sync(ctx context.Context, key string) error {
	defer r.Alone(key)()
	var none O
	if object := r.Get(key); object != none {
		return r.SyncObject(ctx, key, object)
	}
	return r.gone(ctx, key)
}

// SyncObject updates the status of an object, whose key no other worker handles, and queues what only HTCondor can do.
// It may run at any time, any number of times.
func (r *Reconciler[O, S, K]) SyncObject(ctx context.Context, key string, object O) error {
	c, err := r.o.Kind.Gather(ctx, object)
	if err != nil {
		return err
	}
	step := c.Step()
	if wait := r.untilKnown(key, step); wait > 0 {
		r.Changed.AddAfter(key, wait)
		return nil
	}
	failed := c.Follow(ctx)
	blockers := r.Memory.Of(key).Blockers
	defer r.start(key, step, blockers[Acting]) // the status comes first, so that the action has the updated object
	if step.Do == nil && !step.Orphans {
		r.Memory.Unblock(key, Acting)
		blockers[Acting] = nil
	}
	if step.Do == nil && object.GetDeletionTimestamp() != nil {
		return failed
	}
	differs, err := r.writeStatus(ctx, key, c, blockers)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	now := r.o.Now()
	if at, why := c.Expiry(); !differs && !at.IsZero() && !now.Before(at) {
		return r.expire(ctx, object, why)
	}
	if wait := step.Again.Sub(now); wait > 0 {
		r.Changed.AddAfter(key, wait)
	}
	return nil
}

// How long the first status of an object waits, and one that a submission under way would make look interrupted:
// usually its jobs' ids are known by then.
const firstWrite = 10 * time.Second

// untilKnown returns how long to wait for that.
func (r *Reconciler[O, S, K]) untilKnown(key string, step Step) time.Duration {
	now := r.o.Now()
	since, claimed := r.Actions.Since(key)
	switch {
	case claimed && step.Resumes && now.Sub(since) < firstWrite:
		return BetweenWrites
	case !step.First || r.Memory.Of(key).Blockers[Acting] != nil:
		return 0
	}
	wait := r.Memory.UntilFirstWrite(key, now, firstWrite)
	if wait > 0 {
		r.Actions.Add(step.Class, key)
	}
	return wait
}

// start queues what needs HTCondor, unless it waits for its next try.
func (r *Reconciler[O, S, K]) start(key string, step Step, b *Blocker) {
	if step.Do != nil && (b == nil || r.o.Now().After(b.Retry)) || step.Orphans && b == nil {
		r.Actions.Add(step.Class, key)
	}
}

// writeStatus writes the status and the Events of what happened. It returns whether there was a difference.
func (r *Reconciler[O, S, K]) writeStatus(
	ctx context.Context, key string, c Case[O, S], blockers Blockers,
) (differs bool, err error) {
	now := r.o.Now()
	object, before := c.Object()
	after := c.Status(blockers, now)
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	pause, worth := c.Delay(before, after)
	if !worth {
		return false, nil
	}
	if wait := r.Memory.UntilWrite(key, now, pause); wait > 0 {
		r.Changed.AddAfter(key, wait)
		return true, nil
	}
	written, err := r.o.Objects.SetStatus(ctx, object, after)
	if err != nil {
		return true, fmt.Errorf("write status: %w", err)
	}
	r.Cache.Mutation(written)
	r.Memory.Change(key, func(known *Record[K]) { known.Wrote = now })
	r.traced(key, c, before, after)
	for _, e := range c.Events(before, after) {
		if e.Warning {
			r.o.Events.Warning(object, e.Reason, e.Message)
		} else {
			r.o.Events.Normal(object, e.Reason, e.Message)
		}
	}
	return true, nil
}

// expire deletes an expired object only if it is unchanged since that was decided: an edit that came first, such as one
// that runs it again, keeps it.
func (r *Reconciler[O, S, K]) expire(ctx context.Context, object O, why string) error {
	err := r.o.Objects.Delete(ctx, object)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another sync follows
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	r.o.Events.Normal(object, "Expired", why) // not before, or each try would write one
	return nil
}

// gone removes what the ledger has of an object that is gone.
func (r *Reconciler[O, S, K]) gone(ctx context.Context, key string) (err error) {
	var runs []ledger.Run
	if r.o.Owned != nil {
		r.o.Owned.Gone(key)
		if runs, err = r.Runs(ctx, key); err != nil {
			return err
		}
	}
	if len(runs) == 0 {
		r.Orphans.Deletions.Forget(key)
		r.Memory.Forget(key)
	} else if b := r.Memory.Of(key).Blockers[Acting]; b == nil || r.o.Now().After(b.Retry) {
		r.Actions.Add(Deleting, key)
	}
	return nil
}
