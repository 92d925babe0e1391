package reconciler

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/keymutex"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify/traces"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Object is a pointer to an object of one of the kinds in api/v1alpha1.
type Object interface {
	comparable
	metav1.Object
}

// Sent is an Object that has runs in HTCondor.
type Sent interface {
	Object
	Abandoned() bool  // an administrator lets go of its jobs
	Rerun() string    // the request to run it again
	SpecHash() string // of what of its spec decides what is sent
}

// Kind is what is particular to objects of one kind, whose status is an S.
type Kind[O Object, S any] interface {
	// Gather reads everything that a decision about an object needs, and decides.
	Gather(ctx context.Context, object O) (Case[O, S], error)
	// Seen is told what the informer has of a change; before is nil if the object is new, now if it is gone.
	Seen(before, now O)
	// Ended reports whether nothing happens to an object any more by itself.
	Ended(object O) bool
}

// Owned is what a kind does about what its objects have in HTCondor.
type Owned[O Object] interface {
	// AsJob returns an object as pools know it: as an HTCJob that is sent by the same pool.
	AsJob(object O) *v1alpha1.HTCJob
	// Gone is told that there is no object of that key.
	Gone(key string)
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
}

// Case is an object as it was gathered, and what follows from that.
type Case[O Object, S any] interface {
	// Step is what it needs of HTCondor.
	Step() Step
	// Follow queues what it needs besides.
	Follow(ctx context.Context) error
	// Object returns the object and the status that it has.
	Object() (O, S)
	// Status returns the status that it should have. It changes nothing.
	Status(blockers Blockers, now time.Time) S
	// Delay returns how long after the write before such a change may be written, so that more is written with it;
	// worth is false if it alone is not written at all.
	Delay(before, after S) (pause time.Duration, worth bool)
	// Events returns what has happened between two statuses.
	Events(before, after S) []lifecycle.Event
	// Trace returns where the time of an attempt went that has ended between two statuses; nil: none has.
	Trace(before, after S, handed Handed) *traces.Trace
	// Expiry returns when it is to be deleted, and why; the zero time: never.
	Expiry() (at time.Time, why string)
}

// Options are the parts of a Reconciler.
type Options[O Object, S any] struct {
	Common
	Kind     Kind[O, S]
	Owned    Owned[O]    // nil: its objects have no runs
	Name     string      // of the kind
	Label    string      // of an object in the log
	Runs     ledger.Kind // of the objects' runs
	Deleters int         // at least so many Actors for Deleting
	Informer cache.SharedIndexInformer
	Events   Events[O]
	Objects  Objects[O, S]
	Log      zerolog.Logger
}

// Ledger stores runs, procs and nodes.
type Ledger = ledger.Store

// Events tells the user what happened to an object.
type Events[O Object] interface {
	Normal(object O, reason, message string)
	Warning(object O, reason, message string)
}

// Reconciler brings objects and HTCondor in line. K is what its kind remembers of each.
type Reconciler[O Object, S, K any] struct {
	Cache   cache.MutationCache // the informer's, plus our own writes it has not seen yet
	Changed fairqueue.Queue
	Ended   fairqueue.Queue // objects whose end is known but not told: it does not wait for what else has changed
	Routine fairqueue.Queue // objects to be looked at although nothing is known to have changed
	Actions Actions
	Memory  Memory[K]
	Orphans *orphans.Guard
	// Stagings bring inputs of objects: see Staging.
	Stagings inputs.Stagings

	o       Options[O, S]
	actors  [Classes]*fairqueue.Pool[sending.Line]
	ending  atomic.Int32      // how many ends are being written
	syncing keymutex.KeyMutex // held while one worker reads the ledger and writes the status of an object
}

// New returns a reconciler, to which the informer tells what changes.
func New[O Object, S, K any](o Options[O, S]) (*Reconciler[O, S, K], error) {
	r := &Reconciler[O, S, K]{
		o: o, syncing: keymutex.NewHashed(256),
		Cache: cache.NewIntegerResourceVersionMutationCache(
			klog.Background(), o.Informer.GetStore(), o.Informer.GetIndexer(), time.Minute, false),
		Changed: queue(5*time.Millisecond, 10*time.Second),
		Ended:   queue(5*time.Millisecond, 10*time.Second),
		Routine: NewQueue(),
	}
	r.Memory.UID = r.uid
	r.Orphans = &orphans.Guard{
		Kind: o.Runs, Ledger: o.Ledger, Namespace: o.Namespace, There: r.there, Now: o.Now, Many: r.manyVanished,
		Few: r.fewVanished,
	}
	for class := range Classes {
		r.Actions.Queues[class] = NewQueue()
		size := o.Actors
		if class == Deleting {
			size = max(o.Deleters, o.Actors)
		}
		r.actors[class] = &fairqueue.Pool[sending.Line]{
			Queue: r.Actions.Queues[class], Size: size, More: sending.Line.More,
			Backend: func(ctx context.Context, key string) sending.Line { return o.Owned.Line(ctx, class, key) },
			Serve: fairqueue.Each(func(ctx context.Context, key string) {
				if class == Submitting {
					r.endsFirst(ctx)
				}
				r.ActOne(ctx, class, key)
			}),
		}
	}
	if o.Owned != nil {
		o.depend, o.proved = append(o.depend, r.dependsOn), append(o.proved, r.accountsTurned)
	}
	if _, err := o.Informer.AddEventHandler(r.Handler()); err != nil {
		return nil, fmt.Errorf("watch %ss: %w", o.Name, err)
	}
	return r, nil
}

// Go starts the workers. They work until ShutDown, and finish what is in flight.
func (r *Reconciler[O, S, K]) Go(ctx context.Context, group *errgroup.Group) {
	for range r.o.Workers {
		group.Go(func() error { fairqueue.Drain(ctx, r.Changed, r.SyncOne); return nil })
		group.Go(func() error { fairqueue.Drain(ctx, r.Routine, r.SyncOne); return nil })
		for range tellers {
			group.Go(func() error { fairqueue.Drain(ctx, r.Ended, r.SyncEnded); return nil })
		}
	}
	for _, workers := range r.actors {
		group.Go(func() error { workers.Run(ctx); return nil })
	}
}

// ShutDown ends the workers.
func (r *Reconciler[O, S, K]) ShutDown() {
	r.Stagings.Close()
	r.Changed.ShutDown()
	r.Ended.ShutDown()
	r.Routine.ShutDown()
	for _, queue := range r.Actions.Queues {
		queue.ShutDown()
	}
}

// Waiting returns how many objects wait in each queue for a worker. Those in a back-off after a failure do not count.
func (r *Reconciler[O, S, K]) Waiting() map[string]int {
	n := map[string]int{"changed": r.Changed.Len(), "ended": r.Ended.Len(), "routine": r.Routine.Len()}
	for class, workers := range r.actors {
		n[[Classes]string{"submit", "ask", "remove", "delete"}[class]] = workers.Waiting()
	}
	return n
}

// Get returns the object as last seen or written, nil if it is gone. It is shared: copy before changing.
func (r *Reconciler[O, S, K]) Get(key string) (none O) {
	object, found, err := r.Cache.GetByKey(key)
	if err != nil || !found {
		return none
	}
	return object.(O)
}

// there returns the UIDs of the objects that the apiserver has.
func (r *Reconciler[O, S, K]) there(ctx context.Context) (map[string]bool, error) {
	there := map[string]bool{}
	err := r.o.Objects.Each(ctx, r.o.Namespace, "", func(object O) error {
		there[string(object.GetUID())] = true
		return nil
	})
	return there, err
}

// uid returns that of the object that has a name now, "" if there is none.
func (r *Reconciler[O, S, K]) uid(key string) string {
	var none O
	if object := r.Get(key); object != none {
		return string(object.GetUID())
	}
	return ""
}

// All lists the objects as the informer has them.
func (r *Reconciler[O, S, K]) All() (all []O) {
	for _, object := range r.o.Informer.GetStore().List() {
		all = append(all, object.(O))
	}
	return all
}

// Alone waits until no other worker handles a key, and returns what ends that; otherwise an older status might be
// written last, or the same Event twice.
func (r *Reconciler[O, S, K]) Alone(key string) (done func()) {
	r.syncing.LockKey(key)
	return func() { _ = r.syncing.UnlockKey(key) } // fails only if it is not locked
}

// Runs lists the runs that the ledger has under the name of an object.
func (r *Reconciler[O, S, K]) Runs(ctx context.Context, key string) (runs []ledger.Run, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", key, err)
	}
	return ledger.Get(ctx, r.o.Ledger, func(tx *ledger.Tx) ([]ledger.Run, error) {
		return tx.Runs(ledger.RunFilter{Kind: r.o.Runs, Namespace: namespace, Name: name})
	})
}

func (r *Reconciler[O, S, K]) manyVanished(n int, such ledger.Run) {
	r.o.Log.Error().Int("objects", n).Str("such as", such.Namespace+"/"+such.Name).
		Msgf("many %ss have vanished without having been deleted: their jobs and output are kept "+
			"until htcd reconcile --once --remove-orphans", r.o.Name)
}

func (r *Reconciler[O, S, K]) fewVanished(gone ledger.Run) {
	r.o.Log.Warn().Str(r.o.Label, gone.Namespace+"/"+gone.Name).Str("uid", gone.UID).
		Msgf("the %s has vanished without having been deleted, as when its finalizer is taken away or an older state of "+
			"etcd is put back: its jobs and output are removed", r.o.Name)
}

// Warn tells the user of an object what is wrong.
func (r *Reconciler[O, S, K]) Warn(key, reason, message string) {
	var none O
	if object := r.Get(key); object != none {
		r.o.Events.Warning(object, reason, message)
	}
}

// Report tells the user once what prevents something, and has the status say it.
func (r *Reconciler[O, S, K]) Report(key string, what Blockable, b Blocker, err error, consequence string) {
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
func (r *Reconciler[O, S, K]) Retry(key string) {
	class := Submitting
	if b := r.Memory.Of(key).Blockers[Acting]; b != nil {
		class = b.Class
	}
	r.Actions.Forget(key)
	r.Actions.Add(class, key)
}

// RetryAll ends the back-off of every object whose blocker satisfies such.
func (r *Reconciler[O, S, K]) RetryAll(such func(Blocker) bool) {
	for key := range r.Memory.Blocked(Acting, such) {
		r.Retry(key)
	}
}

// AtLimit reports whether an object waits because of a schedd's limit.
func AtLimit(b Blocker) bool { return b.Reason == condor.Limit.String() }

// EndpointTurned continues with what waits for a schedd that answers again, or could not even find out which one to
// ask, and has the statuses say what does not answer.
func (r *Reconciler[O, S, K]) EndpointTurned(endpoint schedd.Endpoint, answers bool) {
	if answers {
		r.RetryAll(func(b Blocker) bool {
			return b.Condition == v1alpha1.ConditionBackendReachable &&
				(b.Endpoint == endpoint || b.Endpoint == schedd.Endpoint{})
		})
	}
	r.WakeAll()
}

// NeedsLedger reports whether an object may go on once the ledger can be written again.
func NeedsLedger(b Blocker) bool {
	return b.Reason == sending.ReasonLedgerUnavailable || b.Reason == sending.ReasonNoSpace
}

// RetryLimited lets two objects that wait at a schedd's limit ask again: each submission that it takes wakes two more.
func (r *Reconciler[O, S, K]) RetryLimited() {
	woken := 0
	for key := range r.Memory.Blocked(Acting, AtLimit) {
		if woken++; woken > 2 {
			return
		}
		r.Retry(key)
	}
}

// WakeAll queues every object that has not ended, after something changed that concerns them all.
func (r *Reconciler[O, S, K]) WakeAll() {
	r.Wake(func(object O) bool { return !r.o.Kind.Ended(object) })
}

// Wake queues such objects, after something changed that concerns them.
func (r *Reconciler[O, S, K]) Wake(such func(O) bool) {
	for _, object := range r.All() {
		if such(object) {
			r.Routine.Add(keyOf(object))
		}
	}
}
