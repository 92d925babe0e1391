package reconciler

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/keymutex"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Object is a pointer to an object of one of the kinds in api/v1alpha1.
type Object interface {
	comparable
	metav1.Object
	Abandoned() bool  // an administrator lets go of its jobs
	Rerun() string    // the request to run it again
	SpecHash() string // of what of its spec decides what is sent
}

// Kind is what is particular to objects of one kind.
type Kind[O Object] interface {
	// Sync updates the status of an object and queues what only HTCondor can do. It may run at any time, any number of
	// times.
	Sync(ctx context.Context, key string, object O) error
	// Gone is told that there is no object of that key.
	Gone(key string)
	// Seen is told what the informer has of a change; before is nil if the object is new, now if it is gone.
	Seen(before, now O)
	// Ended reports whether nothing happens to an object any more by itself.
	Ended(object O) bool
	// Next decides, from the present ledger, what needs HTCondor.
	Next(ctx context.Context, object O) (Step, error)
	// Remove removes from HTCondor what these runs of a deleted object have sent, and what the ledger may have lost.
	Remove(ctx context.Context, object O, runs []ledger.Run) error
	// Forget drops what htcd has of it.
	Forget(ctx context.Context, object O, runs []ledger.Run) error
	// Owner removes what is left in HTCondor, and then in the ledger, of objects that are gone.
	Owner() orphans.Owner
	// Line names the workers of an action.
	Line(ctx context.Context, class Class, key string) sending.Line
	// Acted is told how an action ended. It returns true if something else will wake the object, so that it is not
	// tried again by itself.
	Acted(key string, err error) (woken bool)
	// Explain turns an error of an action into a message for the user.
	Explain(err error) Blocker
}

// Options are the parts of a Reconciler.
type Options[O Object] struct {
	Common
	Kind     Kind[O]
	Name     string      // of the kind
	Label    string      // of an object in the log
	Runs     ledger.Kind // of the objects' runs
	Deleters int         // at least so many Actors for Deleting
	Informer cache.SharedIndexInformer
	// There lists the UIDs of the objects that the apiserver has.
	There   func(context.Context) (map[string]bool, error)
	Events  Events[O]
	Objects Objects[O]
	Log     zerolog.Logger
}

// Ledger stores runs, procs and nodes.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Events tells the user what happened to an object.
type Events[O Object] interface {
	Normal(object O, reason, message string)
	Warning(object O, reason, message string)
}

// Reconciler brings objects and HTCondor in line. K is what its kind remembers of each.
type Reconciler[O Object, K any] struct {
	Cache   cache.MutationCache // the informer's, plus our own writes it has not seen yet
	Changed fairqueue.Queue
	Ended   fairqueue.Queue // objects whose end is known but not told: it does not wait for what else has changed
	Routine fairqueue.Queue // objects to be looked at although nothing is known to have changed
	Actions Actions
	Memory  Memory[K]
	Orphans *orphans.Guard
	o       Options[O]
	actors  [Classes]*fairqueue.Pool[sending.Line]
	syncing keymutex.KeyMutex // held while one worker reads the ledger and writes the status of an object
}

// New returns a reconciler, to which the informer tells what changes.
func New[O Object, K any](o Options[O]) (*Reconciler[O, K], error) {
	r := &Reconciler[O, K]{
		o: o, syncing: keymutex.NewHashed(256),
		Cache: cache.NewIntegerResourceVersionMutationCache(
			klog.Background(), o.Informer.GetStore(), o.Informer.GetIndexer(), time.Minute, false),
		Changed: queue(5*time.Millisecond, 10*time.Second),
		Ended:   queue(5*time.Millisecond, 10*time.Second),
		Routine: NewQueue(),
	}
	r.Memory.UID = r.uid
	r.Orphans = &orphans.Guard{
		Kind: o.Runs, Ledger: o.Ledger, Namespace: o.Namespace, There: o.There, Now: o.Now, Many: r.manyVanished,
	}
	for class := range Classes {
		r.Actions.Queues[class] = NewQueue()
		size := o.Actors
		if class == Deleting {
			size = max(o.Deleters, o.Actors)
		}
		r.actors[class] = &fairqueue.Pool[sending.Line]{
			Queue: r.Actions.Queues[class], Size: size, More: sending.Line.More,
			Backend: func(ctx context.Context, key string) sending.Line { return o.Kind.Line(ctx, class, key) },
			Serve: fairqueue.Each(func(ctx context.Context, key string) {
				if class == Submitting {
					r.endsFirst(ctx)
				}
				r.ActOne(ctx, class, key)
			}),
		}
	}
	if _, err := o.Informer.AddEventHandler(r.Handler()); err != nil {
		return nil, fmt.Errorf("watch %ss: %w", o.Name, err)
	}
	return r, nil
}

// Go starts the workers. They work until ShutDown, and finish what is in flight.
func (r *Reconciler[O, K]) Go(ctx context.Context, group *errgroup.Group) {
	for range r.o.Workers {
		group.Go(func() error { fairqueue.Drain(ctx, r.Changed, r.SyncOne); return nil })
		group.Go(func() error { fairqueue.Drain(ctx, r.Ended, r.SyncEnded); return nil })
		group.Go(func() error { fairqueue.Drain(ctx, r.Routine, r.SyncOne); return nil })
	}
	for _, workers := range r.actors {
		group.Go(func() error { workers.Run(ctx); return nil })
	}
}

// ShutDown ends the workers.
func (r *Reconciler[O, K]) ShutDown() {
	r.Changed.ShutDown()
	r.Ended.ShutDown()
	r.Routine.ShutDown()
	for _, queue := range r.Actions.Queues {
		queue.ShutDown()
	}
}

// Waiting returns how many objects wait in each queue for a worker. Those in a back-off after a failure do not count.
func (r *Reconciler[O, K]) Waiting() map[string]int {
	n := map[string]int{"changed": r.Changed.Len(), "ended": r.Ended.Len(), "routine": r.Routine.Len()}
	for class, workers := range r.actors {
		n[[Classes]string{"submit", "ask", "remove", "delete"}[class]] = workers.Waiting()
	}
	return n
}

// Get returns the object as last seen or written, nil if it is gone. It is shared: copy before changing.
func (r *Reconciler[O, K]) Get(key string) (none O) {
	object, found, err := r.Cache.GetByKey(key)
	if err != nil || !found {
		return none
	}
	return object.(O)
}

// uid returns that of the object that has a name now, "" if there is none.
func (r *Reconciler[O, K]) uid(key string) string {
	var none O
	if object := r.Get(key); object != none {
		return string(object.GetUID())
	}
	return ""
}

// All lists the objects as the informer has them.
func (r *Reconciler[O, K]) All() (all []O) {
	for _, object := range r.o.Informer.GetStore().List() {
		all = append(all, object.(O))
	}
	return all
}

// Alone waits until no other worker handles a key, and returns what ends that; otherwise an older status might be
// written last, or the same Event twice.
func (r *Reconciler[O, K]) Alone(key string) (done func()) {
	r.syncing.LockKey(key)
	return func() { _ = r.syncing.UnlockKey(key) } // fails only if it is not locked
}

// SyncOne is Sync with its back-off.
func (r *Reconciler[O, K]) SyncOne(ctx context.Context, key string) { r.syncFrom(ctx, r.Changed, key) }

// SyncEnded is SyncOne for an object that has ended.
func (r *Reconciler[O, K]) SyncEnded(ctx context.Context, key string) { r.syncFrom(ctx, r.Ended, key) }

func (r *Reconciler[O, K]) syncFrom(ctx context.Context, queue fairqueue.Queue, key string) {
	err := r.Sync(ctx, key)
	if err == nil {
		queue.Forget(key)
		return
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		r.o.Log.Warn().Err(err).Str(r.o.Label, key).Msg("status not written, trying again")
	}
	queue.AddRateLimited(key)
}

// Sync is the kind's, unless the object is gone.
func (r *Reconciler[O, K]) Sync(ctx context.Context, key string) error {
	defer r.Alone(key)()
	var none O
	if object := r.Get(key); object != none {
		return r.o.Kind.Sync(ctx, key, object)
	}
	r.o.Kind.Gone(key)
	runs, err := r.Runs(ctx, key)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		r.Orphans.Deletions.Forget(key)
		r.Memory.Forget(key)
	} else if b := r.Memory.Of(key).Blockers[Acting]; b == nil || r.o.Now().After(b.Retry) {
		r.Actions.Add(Deleting, key)
	}
	return nil
}

// Runs lists the runs that the ledger has under the name of an object.
func (r *Reconciler[O, K]) Runs(ctx context.Context, key string) (runs []ledger.Run, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", key, err)
	}
	err = r.o.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.Runs(ledger.RunFilter{Kind: r.o.Runs, Namespace: namespace, Name: name})
		return err
	})
	return runs, err
}

func (r *Reconciler[O, K]) manyVanished(n int, such ledger.Run) {
	r.o.Log.Error().Int("objects", n).Str("such as", such.Namespace+"/"+such.Name).
		Msgf("many %ss have vanished without having been deleted: their jobs and output are kept "+
			"until htcd reconcile --once --remove-orphans", r.o.Name)
}

// Warn tells the user of an object what is wrong.
func (r *Reconciler[O, K]) Warn(key, reason, message string) {
	var none O
	if object := r.Get(key); object != none {
		r.o.Events.Warning(object, reason, message)
	}
}

// Written records that the status of an object was written, and when the pause until the next write begins, and tells
// the user what happened.
func (r *Reconciler[O, K]) Written(object, written O, pause time.Time, happened []lifecycle.Event) {
	r.Cache.Mutation(written)
	r.Memory.Wrote(keyOf(object), pause)
	for _, e := range happened {
		if e.Warning {
			r.o.Events.Warning(object, e.Reason, e.Message)
		} else {
			r.o.Events.Normal(object, e.Reason, e.Message)
		}
	}
}

// Expire deletes an expired object only if it is unchanged since that was decided: an edit that came first, such as one
// that runs it again, keeps it.
func (r *Reconciler[O, K]) Expire(ctx context.Context, object O, why string) error {
	r.o.Events.Normal(object, "Expired", why)
	err := r.o.Objects.Delete(ctx, object)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another sync follows
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// Report tells the user once what prevents something, and has the status say it.
func (r *Reconciler[O, K]) Report(key string, what Blockable, b Blocker, err error, consequence string) {
	if r.Memory.Block(key, what, b) {
		entry := r.o.Log.Warn().Err(err).Str(r.o.Label, key).Str("reason", b.Reason)
		if !b.Retry.IsZero() {
			entry = entry.Dur("retry", b.Retry.Sub(r.o.Now()))
		}
		entry.Msg(consequence)
		r.Warn(key, b.Reason, b.Message)
	}
	r.Changed.Add(key)
}

// Retry ends the back-off of an object.
func (r *Reconciler[O, K]) Retry(key string) {
	class := Submitting
	if b := r.Memory.Of(key).Blockers[Acting]; b != nil {
		class = b.Class
	}
	r.Actions.Forget(key)
	r.Actions.Add(class, key)
}

// RetryAll ends the back-off of every object whose blocker satisfies such.
func (r *Reconciler[O, K]) RetryAll(such func(Blocker) bool) {
	for key := range r.Memory.Blocked(Acting, such) {
		r.Retry(key)
	}
}

// AtLimit reports whether an object waits because of a schedd's limit.
func AtLimit(b Blocker) bool { return b.Reason == schedd.Limit.String() }

// EndpointTurned continues with what waits for a schedd that answers again, or could not even find out which one to
// ask, and has the statuses say what does not answer.
func (r *Reconciler[O, K]) EndpointTurned(endpoint schedd.Endpoint, answers bool) {
	if answers {
		r.RetryAll(func(b Blocker) bool {
			return b.Condition == v1alpha1.ConditionBackendReachable &&
				(b.Endpoint == endpoint || b.Endpoint == schedd.Endpoint{})
		})
	}
	r.WakeAll()
}

// RetryLimited lets two objects that wait at a schedd's limit ask again: each submission that it takes wakes two more.
func (r *Reconciler[O, K]) RetryLimited() {
	woken := 0
	for key := range r.Memory.Blocked(Acting, AtLimit) {
		if woken++; woken > 2 {
			return
		}
		r.Retry(key)
	}
}

// WakeAll queues every object that has not ended, after something changed that concerns them all.
func (r *Reconciler[O, K]) WakeAll() { r.Wake(func(object O) bool { return !r.o.Kind.Ended(object) }) }

// Wake queues such objects, after something changed that concerns them.
func (r *Reconciler[O, K]) Wake(such func(O) bool) {
	for _, object := range r.All() {
		if such(object) {
			r.Routine.Add(keyOf(object))
		}
	}
}
