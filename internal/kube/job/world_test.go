package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/matching"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// world is a controller with a real ledger, a schedd in memory, a store as its apiserver, and its own clock.
type world struct {
	*Controller
	t          *testing.T
	schedd     *scheddtest.Schedd
	book       *ledger.Ledger
	store      cache.Store
	clock      time.Time
	finalizers int              // how often one was requested
	version    string           // that the apiserver has at the start
	events     []string         // , "type reason: message"
	denied     error            // the error of Credentials
	refused    map[string]error // the same for named Secrets
	asked      atomic.Int64     // how often Credentials was asked for the common account

	accounts map[string]string // by namespace, for those that have their own
	writes   int               // of statuses
	lags     bool              // whether the store does not show that finalizers were removed
	patches  int               // of Secrets

	own         []secrets.Own // what Credentials returns for the namespace's own
	unheld      error         // the error of Hold and LetGo
	unlisted    error         // the error of listing HTCJobs
	undeletable error         // the error of deleting one
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	book := ledgertest.Open(t)
	w := &world{t: t, schedd: scheddtest.New(), book: book, clock: time.Now(), accounts: map[string]string{}}
	w.schedd.Clock(func() time.Time { return w.clock })
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.HTCJob{}, 0, cache.Indexers{})
	w.store = informer.GetStore()
	o := Options{
		Common: reconciler.Common{
			Site:    &site.Site{CallbackURL: "http://receiver.test/cloudevents", Binds: []string{"/cvmfs"}},
			Staging: t.TempDir(), Workers: 1, Actors: 1, Ledger: book, Credentials: w, Matching: &matching.Watch{},
			Now: func() time.Time { return w.clock },
		},
		Fetchers: 1, Informer: informer, Objects: w, Events: w, Secrets: w, Log: zerolog.Nop(), Observer: nobody{},
	}
	for _, f := range change {
		f(&o)
	}
	o.Shares = o.Output.NewShares(0, o.Now)
	o.Staged = output.Store{Root: o.Staging}.NewShares(1, o.Now)
	o.Shared = reconciler.NewShared(w.schedd, o.Credentials, book, backend.Pace{}, o.Now)
	var err error
	w.Controller, err = New(o)
	require.NoError(t, err)
	return w
}

// nobody is an Observer that ignores everything.
type nobody struct{}

func (nobody) Repaired(crosscheck.Repair, int)                      {}
func (nobody) Passed(string, schedd.Endpoint, time.Duration, error) {}
func (nobody) Used(string, int64)                                   {}
func (nobody) Unread(int)                                           {}
func (nobody) Fetched(int, int64)                                   {}
func (nobody) GaveUp(int)                                           {}
func (nobody) FetchFailed(string)                                   {}
func (nobody) Pushed(int64)                                         {}
func (nobody) PushFailed(string)                                    {}

// newWorldWithOutput returns a world whose htcd fetches the output of jobs.
func newWorldWithOutput(t *testing.T, change ...func(*Options)) *world {
	keeps := func(o *Options) { o.Output = output.Store{Root: t.TempDir()} }
	return newWorld(t, append(change, keeps)...)
}

// asks lets the controller talk to another schedd.
func (w *world) asks(s backend.Schedd) { w.Answering.Schedd = s }

// restart starts a new htcd with the same ledger, schedd and apiserver.
func (w *world) restart() {
	w.t.Helper()
	var err error
	w.Shared = reconciler.NewShared(w.Answering.Schedd, w.Credentials, w.book, w.Answering.Most, w.Now)
	w.Controller, err = New(w.Options)
	require.NoError(w.t, err)
	require.NoError(w.t, w.adoptOrphans(w.t.Context()))
	for _, object := range w.store.List() {
		job := object.(*v1alpha1.HTCJob)
		w.Changed.Add(job.Namespace + "/" + job.Name)
	}
}

func htcjob(name string, change ...func(*v1alpha1.HTCJob)) *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "1",
		},
		Spec: v1alpha1.HTCJobSpec{
			Script: v1alpha1.Script{Program: v1alpha1.Program{Image: "centos", Command: "bash", Source: "exit 0\n"}},
		},
		Status: v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending}, // the CRD's default
	}
	for _, f := range change {
		f(job)
	}
	return job
}

func queueOf(n int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Script.Queue = &n }
}

// apply adds an HTCJob to the apiserver and settles.
func (w *world) apply(job *v1alpha1.HTCJob) *v1alpha1.HTCJob {
	w.t.Helper()
	require.NoError(w.t, w.store.Add(job))
	w.Changed.Add(job.Namespace + "/" + job.Name)
	w.settle()
	return w.job(job.Name)
}

func (w *world) job(name string) *v1alpha1.HTCJob {
	w.t.Helper()
	object, found, err := w.store.GetByKey("default/" + name)
	require.NoError(w.t, err)
	if !found {
		return nil
	}
	return object.(*v1alpha1.HTCJob)
}

// settle works through the queues until nothing is due.
func (w *world) settle() {
	for w.step() {
	}
}

// step handles one key, if any is due.
func (w *world) step() bool {
	select {
	case <-w.Prover.News:
		w.Prover.Prove(w.t.Context(), false)
		return true
	default:
	}
	if w.Ended.Len() > 0 {
		key, _ := w.Ended.Get()
		w.SyncEnded(w.t.Context(), key)
		w.Ended.Done(key)
		return true
	}
	if w.Changed.Len() > 0 {
		key, _ := w.Changed.Get()
		w.SyncOne(w.t.Context(), key)
		w.Changed.Done(key)
		return true
	}
	if w.Routine.Len() > 0 {
		key, _ := w.Routine.Get()
		w.SyncOne(w.t.Context(), key)
		w.Routine.Done(key)
		return true
	}
	if w.fetcher.Queue.Len() > 0 {
		key, _ := w.fetcher.Queue.Get()
		w.fetcher.Fetch(w.t.Context(), key)
		w.fetcher.Queue.Done(key)
		return true
	}
	if w.pusher.Queue.Len() > 0 {
		key, _ := w.pusher.Queue.Get()
		w.pusher.Push(w.t.Context(), key)
		w.pusher.Queue.Done(key)
		return true
	}
	if w.logs.Len() > 0 {
		key, _ := w.logs.Get()
		w.logsOne(w.t.Context(), key)
		w.logs.Done(key)
		return true
	}
	if w.secrets.Len() > 0 {
		namespace, _ := w.secrets.Get()
		w.secretsOne(w.t.Context(), namespace)
		w.secrets.Done(namespace)
		return true
	}
	if w.turns.Len() > 0 {
		pool, _ := w.turns.Get()
		w.turn(w.t.Context(), pool)
		w.turns.Done(pool)
		return true
	}
	for e, queue := range w.Actions.Queues {
		if queue.Len() > 0 {
			key, _ := queue.Get()
			w.ActOne(w.t.Context(), reconciler.Class(e), key)
			queue.Done(key)
			return true
		}
	}
	return false
}

// later lets time pass and syncs every HTCJob again.
func (w *world) later(d time.Duration) {
	w.clock = w.clock.Add(d)
	for _, object := range w.store.List() {
		job := object.(*v1alpha1.HTCJob)
		w.Changed.Add(job.Namespace + "/" + job.Name)
	}
	w.admission.Wake()
	w.settle()
}

// crosscheck runs one pass and settles.
func (w *world) crosscheck() {
	w.t.Helper()
	require.NoError(w.t, w.Crosscheck(w.t.Context()))
	w.settle()
}

// callback delivers the callback of a job of the newest run, after the pause between two writes.
func (w *world) callback(name string, proc, code int) error {
	return w.tells(name, proc, notify.Callback{Retcode: code})
}

// tells delivers what a job of the newest run says.
func (w *world) tells(name string, proc int, c notify.Callback) error {
	defer w.settle()
	return w.says(name, proc, c)
}

// says is tells without what follows from it.
func (w *world) says(name string, proc int, c notify.Callback) error {
	w.clock = w.clock.Add(reconciler.BetweenWrites)
	token := notify.Hash("the token of " + name)
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		run, err := tx.LatestRun("uid-" + name)
		if err != nil {
			return err
		}
		run.TokenHash = token
		c.Namespace, c.Name, c.JobID = "default", name, fmt.Sprintf("%d.%d", run.Cluster, proc)
		return tx.UpdateRun(run)
	}))
	return w.Record(w.t.Context(), c, token)
}

// ends is callback for a job whose end HTCondor confirms when asked.
func (w *world) ends(name string, proc, code int) error {
	w.schedd.Complete(w.run(name).Cluster, proc, code)
	return w.callback(name, proc, code)
}

func (w *world) write(job *v1alpha1.HTCJob) *v1alpha1.HTCJob {
	if job.DeletionTimestamp != nil && len(job.Finalizers) == 0 {
		_ = w.store.Delete(job)
	} else {
		_ = w.store.Update(job)
	}
	w.Changed.Add(job.Namespace + "/" + job.Name)
	return job
}

// delete does what kubectl delete does.
// delete deletes an HTCJob, and lets pass what the schedd is given until it is asked for the second time.
func (w *world) delete(name string) {
	w.deleteNow(name)
	w.later(2 * recovery.AbsentTwice)
}

func (w *world) deleteNow(name string) {
	job := w.job(name).DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	w.write(job)
	w.settle()
}

func (w *world) AddFinalizer(_ context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error) {
	w.finalizers++
	current := w.job(job.Name).DeepCopy()
	if !slices.Contains(current.Finalizers, v1alpha1.Finalizer) {
		current.Finalizers = append(current.Finalizers, v1alpha1.Finalizer)
	}
	return w.write(current), nil
}

func (w *world) Version(context.Context, string) (string, error) { return w.version, nil }

func (w *world) RemoveFinalizer(_ context.Context, job *v1alpha1.HTCJob) error {
	current := w.job(job.Name).DeepCopy()
	current.Finalizers = nil
	if !w.lags {
		w.write(current)
	}
	return nil
}

func (w *world) SetStatus(
	_ context.Context,
	job *v1alpha1.HTCJob,
	status v1alpha1.HTCJobStatus,
) (*v1alpha1.HTCJob, error) {
	current := w.job(job.Name).DeepCopy()
	current.Status = status
	w.writes++
	return w.write(current), nil
}

func (w *world) Delete(_ context.Context, job *v1alpha1.HTCJob) error {
	current := w.job(job.Name).DeepCopy()
	if current.Generation != job.Generation {
		return apierrors.NewConflict(
			v1alpha1.GroupVersion.WithResource(v1alpha1.Resource).GroupResource(),
			job.Name,
			errBroken,
		)
	}
	if w.undeletable != nil {
		return w.undeletable
	}
	current.DeletionTimestamp = new(metav1.NewTime(w.clock))
	w.write(current)
	return nil
}

func (w *world) Exists(_ context.Context, _, name, uid string) (bool, error) {
	job := w.job(name)
	return job != nil && string(job.UID) == uid, nil
}

func (w *world) Each(_ context.Context, namespace, name string, fn func(*v1alpha1.HTCJob) error) error {
	for _, object := range w.store.List() {
		job := object.(*v1alpha1.HTCJob)
		if (namespace == "" || job.Namespace == namespace) && (name == "" || job.Name == name) {
			if err := fn(job.DeepCopy()); err != nil {
				return err
			}
		}
	}
	return w.unlisted
}

func (w *world) Normal(_ *v1alpha1.HTCJob, reason, message string) {
	w.events = append(w.events, "Normal "+reason+": "+message)
}

func (w *world) Warning(_ *v1alpha1.HTCJob, reason, message string) {
	w.events = append(w.events, "Warning "+reason+": "+message)
}

// Identity names the account in place of a ticket; scheddtest decides by it whose jobs may be removed.
func (w *world) Identity(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	if t.Secret != "" {
		return schedd.Identity{CCache: t.Secret, Endpoint: t.Endpoint}, cmp.Or(w.refused[t.Secret], w.denied)
	}
	if account := w.accounts[t.Namespace]; account != "" {
		return schedd.Identity{CCache: account, Endpoint: t.Endpoint}, w.denied
	}
	return w.Common(ctx, t.Endpoint)
}

func (w *world) Common(_ context.Context, endpoint schedd.Endpoint) (schedd.Identity, error) {
	w.asked.Add(1)
	return schedd.Identity{CCache: scheddtest.Robot, Endpoint: endpoint}, w.denied
}

func (w *world) Own(string) []secrets.Own { return slices.Clone(w.own) }

func (w *world) Unseen(context.Context, string) (bool, error) { return false, nil }

func (w *world) Hold(_ context.Context, s secrets.Own) error { return w.hold(s, true) }

func (w *world) LetGo(_ context.Context, s secrets.Own) error { return w.hold(s, false) }

// hold does what the apiserver does: an object being deleted disappears with its last finalizer.
func (w *world) hold(s secrets.Own, held bool) error {
	i := slices.Index(w.own, s)
	if i < 0 || w.unheld != nil {
		return w.unheld
	}
	w.patches++
	if w.own[i].Held = held; s.Deleting && !held {
		w.own = slices.Delete(w.own, i, i+1)
	}
	return nil
}

func (w *world) Any(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error) {
	return w.Common(ctx, endpoint)
}

var errUnreachable = &condor.Error{
	Kind:    condor.Unreachable,
	Command: "condor_q",
	Stderr:  "Can't find address of local schedd",
}

var errBroken = errors.New("the command was killed")
