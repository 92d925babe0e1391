package workflow

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/matching"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// world is a controller with a real ledger, a schedd in memory, a store as its apiserver, and its own clock.
type world struct {
	*Controller
	t      *testing.T
	schedd *scheddtest.Schedd
	book   *ledger.Ledger
	store  cache.Store
	clock  time.Time
	own    []secrets.Own  // of every namespace
	asks   backend.Schedd // what is asked instead of schedd; nil: that
	warned []string       // Events of workflows: reason and message
	told   []string       // those that are no warnings
	passed []string       // passes over nodes, and how they ended
	lags   bool           // whether the store does not show that finalizers were removed
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, schedd: scheddtest.New(), clock: time.Now()}
	w.schedd.Clock(func() time.Time { return w.clock })
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.HTCWorkflow{}, 0, cache.Indexers{})
	w.store = informer.GetStore()
	now := func() time.Time { return w.clock }
	store := output.Store{Root: t.TempDir()}
	w.Controller = &Controller{Options: Options{
		Common: reconciler.Common{
			Site:        &site.Site{CallbackURL: "http://receiver.test/cloudevents", Program: "/usr/bin/htcd"},
			Staging:     t.TempDir(),
			Shares:      store.NewShares(0, now),
			Staged:      store.NewShares(1, now),
			Workers:     1,
			Actors:      1,
			Credentials: w,
			Matching:    &matching.Watch{},
			Now:         now,
		},
		Output:        store,
		Informer:      synced{informer},
		SecretTouched: w.tend,
		Objects:       objects{w},
		Events:        w,
		Schedd:        w.schedd,
		Observer:      w,
		Log:           zerolog.Nop(),
	}}
	w.openLedger()
	return w
}

// synced is an informer that does not run.
type synced struct{ cache.SharedIndexInformer }

func (synced) HasSynced() bool { return true }

// tend is what the HTCJobs' controller does with the Secrets of a namespace.
func (w *world) tend(namespace string) {
	require.NoError(w.t, w.Keeper.Tend(w.t.Context(), namespace))
}

// openLedger restarts htcd with a new and empty ledger.
func (w *world) openLedger() {
	w.t.Helper()
	w.opens(filepath.Join(w.t.TempDir(), "htcjobs.db"))
}

// opens restarts htcd with the ledger in that file.
func (w *world) opens(path string) {
	w.t.Helper()
	book, err := ledger.Open(w.t.Context(), path)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, book.Close()) })
	w.book = book
	w.restart()
}

// restart starts a new htcd with the same ledger, schedd and apiserver.
func (w *world) restart() {
	w.t.Helper()
	o := w.Options
	o.Ledger = w.book
	condor := w.asks
	if condor == nil {
		condor = w.schedd
	}
	o.Shared = reconciler.NewShared(condor, o.Credentials, w.book, backend.Pace{}, w.Now)
	o.Schedd = o.Shared.Answering
	o.Keeper = &backend.Keeper{Secrets: w}
	o.Keeper.Needed = append(o.Keeper.Needed, func(ctx context.Context, s secrets.Own) (sent bool, err error) {
		err = w.book.Read(
			ctx,
			func(tx *ledger.Tx) (err error) { sent, err = tx.SentWith(s.Namespace, s.Name, s.Usual); return err },
		)
		return sent, err
	})
	var err error
	w.Controller, err = New(o)
	require.NoError(w.t, err)
	require.NoError(w.t, w.resume(w.t.Context()))
	w.all()
}

func (w *world) all() {
	for _, key := range w.store.ListKeys() {
		w.Changed.Add(key)
	}
}

func newWorkflow(name string) *v1alpha1.HTCWorkflow {
	w := &v1alpha1.HTCWorkflow{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "1",
	}}
	script := v1alpha1.Program{Image: "centos", Command: "bash", Source: "exit 0\n"}
	w.Spec = v1alpha1.HTCWorkflowSpec{
		Sequences: &v1alpha1.Sequences{Count: new(int32(2))},
		Steps: []v1alpha1.Step{
			{StepWork: v1alpha1.StepWork{Name: "a", Job: v1alpha1.StepJob{Script: script}}},
			{StepWork: v1alpha1.StepWork{Name: "b", Job: v1alpha1.StepJob{Script: script}}, Pairing: v1alpha1.PairAll},
		},
	}
	return w
}

// apply adds a workflow to the apiserver and settles.
func (w *world) apply(flow *v1alpha1.HTCWorkflow) *v1alpha1.HTCWorkflow {
	w.t.Helper()
	require.NoError(w.t, w.store.Add(flow))
	w.Changed.Add(flow.Namespace + "/" + flow.Name)
	w.later(reconciler.BetweenWrites)
	return w.flow(flow.Name)
}

func (w *world) flow(name string) *v1alpha1.HTCWorkflow {
	object, found, err := w.store.GetByKey("default/" + name)
	require.NoError(w.t, err)
	if !found {
		return nil
	}
	return object.(*v1alpha1.HTCWorkflow)
}

// says returns the reason and the message of a condition.
func (w *world) says(name, kind string) (reason, message string) {
	c := meta.FindStatusCondition(w.flow(name).Status.Conditions, kind)
	if c == nil {
		return "", ""
	}
	return c.Reason, c.Message
}

// later lets time pass and syncs every workflow again.
func (w *world) later(d time.Duration) {
	w.settle()
	w.clock = w.clock.Add(d)
	w.all()
	w.settle()
}

// settle works through the queues until nothing is due.
func (w *world) settle() {
	for w.step() {
	}
}

// step handles one key, if any is due.
func (w *world) step() bool {
	ctx := w.t.Context()
	select {
	case <-w.Prover.News:
		w.Prover.Prove(ctx, false)
		return true
	default:
	}
	switch {
	case w.Ended.Len() > 0:
		key, _ := w.Ended.Get()
		w.SyncEnded(ctx, key)
		w.Ended.Done(key)
	case w.Changed.Len() > 0:
		key, _ := w.Changed.Get()
		w.SyncOne(ctx, key)
		w.Changed.Done(key)
	case w.Routine.Len() > 0:
		key, _ := w.Routine.Get()
		w.SyncOne(ctx, key)
		w.Routine.Done(key)
	case w.fetches.Len() > 0:
		key, _ := w.fetches.Get()
		w.fetchOne(ctx, key)
		w.fetches.Done(key)
	default:
		for class, queue := range w.Actions.Queues {
			if queue.Len() > 0 {
				key, _ := queue.Get()
				w.ActOne(ctx, reconciler.Class(class), key)
				queue.Done(key)
				return true
			}
		}
		return false
	}
	return true
}

// objects is the apiserver.
type objects struct{ *world }

func (o objects) write(flow *v1alpha1.HTCWorkflow) *v1alpha1.HTCWorkflow {
	if flow.DeletionTimestamp != nil && len(flow.Finalizers) == 0 {
		_ = o.store.Delete(flow)
	} else {
		_ = o.store.Update(flow)
	}
	o.Changed.Add(flow.Namespace + "/" + flow.Name)
	return flow
}

func (o objects) AddFinalizer(_ context.Context, flow *v1alpha1.HTCWorkflow) (*v1alpha1.HTCWorkflow, error) {
	current := o.flow(flow.Name).DeepCopy()
	if !slices.Contains(current.Finalizers, v1alpha1.Finalizer) {
		current.Finalizers = append(current.Finalizers, v1alpha1.Finalizer)
	}
	return o.write(current), nil
}

func (o objects) RemoveFinalizer(_ context.Context, flow *v1alpha1.HTCWorkflow) error {
	current := o.flow(flow.Name).DeepCopy()
	current.Finalizers = nil
	if !o.lags {
		o.write(current)
	}
	return nil
}

func (o objects) SetStatus(
	_ context.Context,
	flow *v1alpha1.HTCWorkflow,
	status v1alpha1.HTCWorkflowStatus,
) (*v1alpha1.HTCWorkflow, error) {
	current := o.flow(flow.Name).DeepCopy()
	current.Status = status
	return o.write(current), nil
}

func (o objects) Delete(_ context.Context, flow *v1alpha1.HTCWorkflow) error {
	current := o.flow(flow.Name).DeepCopy()
	current.DeletionTimestamp = new(metav1.NewTime(o.clock))
	o.write(current)
	return nil
}

func (o objects) Each(_ context.Context, _, _ string, fn func(*v1alpha1.HTCWorkflow) error) error {
	for _, object := range o.store.List() {
		if err := fn(object.(*v1alpha1.HTCWorkflow)); err != nil {
			return err
		}
	}
	return nil
}

func (o objects) Exists(_ context.Context, _, name, uid string) (bool, error) {
	flow := o.flow(name)
	return flow != nil && string(flow.UID) == uid, nil
}

// delete does what kubectl delete does.
// delete deletes a workflow, and lets pass what the schedd is given until it is asked for the second time.
func (w *world) delete(name string) {
	w.deleteNow(name)
	w.later(2 * recovery.AbsentTwice)
}

func (w *world) deleteNow(name string) {
	_ = objects{w}.Delete(w.t.Context(), w.flow(name))
	w.settle()
}

func (w *world) Normal(_ *v1alpha1.HTCWorkflow, reason, message string) {
	w.told = append(w.told, reason+": "+message)
}
func (w *world) Warning(_ *v1alpha1.HTCWorkflow, reason, message string) {
	w.warned = append(w.warned, reason+": "+message)
}
func (w *world) Repaired(crosscheck.Repair, int) {}
func (w *world) Pushed(int64)                    {}
func (w *world) NodesPassed(pass string, at schedd.Endpoint, err error) {
	w.passed = append(w.passed, fmt.Sprint(pass, " at ", at.Schedd, ": ", err))
}
func (w *world) DAGSubmitted(int)              {}
func (w *world) RuleActed(v1alpha1.RuleAction) {}
func (w *world) NodesFetched(int)              {}
func (w *world) NodeFetchFailed(string)        {}
func (w *world) Used(string, int64)            {}
func (w *world) PushFailed(string)             {}

func (w *world) Identity(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	return w.Common(ctx, t.Endpoint)
}

func (w *world) Common(_ context.Context, endpoint schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{CCache: scheddtest.Robot, Endpoint: endpoint}, nil
}

func (w *world) Any(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error) {
	return w.Common(ctx, endpoint)
}

func (w *world) Own(string) []secrets.Own { return slices.Clone(w.own) }

func (w *world) Unseen(context.Context, string) (bool, error) { return false, nil }

func (w *world) Hold(_ context.Context, s secrets.Own) error { return w.hold(s, true) }

func (w *world) LetGo(_ context.Context, s secrets.Own) error { return w.hold(s, false) }

func (w *world) hold(s secrets.Own, held bool) error {
	w.own[slices.Index(w.own, s)].Held = held
	return nil
}

// several applies workflows.
func (w *world) several(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("flow-%d", i))
		w.apply(newWorkflow(names[i]))
	}
	return names
}

// ends lets DAGMan's job end, with each of its nodes done.
func (w *world) ends(cluster int) {
	w.t.Helper()
	w.schedd.Complete(cluster, 0, 0)
	for range 2 { // what nobody has seen is settled by the second answer
		require.NoError(w.t, w.Crosscheck(w.t.Context()))
		w.later(time.Minute)
	}
}
