package reconciler

import (
	"context"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/sending"
)

// Objects changes objects in the apiserver.
type Objects[O Object, S any] interface {
	// AddFinalizer returns the object as it is in the apiserver now, never from a cache.
	AddFinalizer(ctx context.Context, object O) (O, error)
	RemoveFinalizer(ctx context.Context, object O) error
	// SetStatus replaces the whole status.
	SetStatus(ctx context.Context, object O, status S) (O, error)
	// Delete deletes exactly the given version of the object; it is a conflict if the object has changed since.
	Delete(ctx context.Context, object O) error
	// Exists asks the apiserver whether the object with that UID is still there.
	Exists(ctx context.Context, namespace, name, uid string) (bool, error)
	// Each calls fn for every object with that namespace and name, either empty for any, as it is in the apiserver.
	Each(ctx context.Context, namespace, name string, fn func(O) error) error
}

// Fresh sets the finalizer and reports whether the object is still as the cache said in everything that decides whether
// a run is begun, sent or stopped. It asks the apiserver itself: the informer of an htcd that has just begun to lead
// may show a long outdated version.
func Fresh[O Sent, S, K any](ctx context.Context, r *Reconciler[O, S, K], object O) (bool, error) {
	now, err := r.o.Objects.AddFinalizer(ctx, object)
	if err != nil {
		return false, fmt.Errorf("add finalizer: %w", err)
	}
	r.Cache.Mutation(now)
	return Unchanged(object, now) && now.SpecHash() == object.SpecHash(), nil
}

// Unchanged reports whether an object is still there and has neither been deleted, nor edited, nor requested to run
// again.
func Unchanged[O Sent](before, now O) bool {
	var none O
	if now == none || now.GetUID() != before.GetUID() || now.GetDeletionTimestamp() != nil {
		return false
	}
	const procs = v1alpha1.RerunProcsAnnotation
	return now.GetGeneration() == before.GetGeneration() && now.Rerun() == before.Rerun() &&
		now.GetAnnotations()[procs] == before.GetAnnotations()[procs]
}

// Finalize removes a deleted object from HTCondor, then from the ledger, the store and the staging directory, and
// releases it. The finalizer stays until a successful answer shows none of its jobs alive.
func Finalize[O Sent, S, K any](ctx context.Context, r *Reconciler[O, S, K], object O) error {
	key := keyOf(object)
	runs, err := r.Runs(ctx, key)
	if err != nil {
		return err
	}
	own := ownRuns(object, runs)
	if object.Abandoned() {
		const left = "its HTCondor jobs, if any, are left as they are"
		r.o.Log.Warn().Str(r.o.Label, key).Msg("abandoned: " + left)
		r.o.Events.Warning(object, "Abandoned", "let go by annotation "+v1alpha1.AbandonAnnotation+"; "+left)
	} else if err := r.o.Owned.Remove(ctx, object, own); err != nil {
		if _, pause := errors.AsType[*sending.Waiting](err); pause {
			return err
		}
		return fmt.Errorf("remove the jobs (an administrator can let go of them with the annotation %s=true): %w",
			v1alpha1.AbandonAnnotation, err)
	}
	if err := r.o.Owned.Forget(ctx, object, own); err != nil {
		return err
	}
	if err := r.o.Objects.RemoveFinalizer(ctx, object); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	r.Memory.Change(key, func(known *Record[K]) { known.Released = object.GetResourceVersion() })
	return nil
}
