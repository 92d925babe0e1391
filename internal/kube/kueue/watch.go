package kueue

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission/fairqueue"
)

// versions are those of Kueue's API that will do, the best first.
var versions = []schema.GroupVersion{
	{Group: "kueue.x-k8s.io", Version: "v1beta2"},
	{Group: "kueue.x-k8s.io", Version: "v1beta1"},
}

// Kueue is the Workloads of HTCJobs and HTCWorkflows. Set its fields, and Run it.
type Kueue struct {
	Discovery discovery.DiscoveryInterface
	Client    dynamic.Interface
	Namespace string // the one of HTCJobs that are watched; empty: all
	// Changed is called with the kind and the key of an object whose Workload has changed, and with neither when Kueue
	// has come or gone.
	Changed func(kind, key string)
	// Elsewhere has the HTCJobs that MultiKueue sends to other clusters: see SentElsewhere. It is not started.
	Elsewhere cache.SharedIndexInformer
	Warn      func(job *v1alpha1.HTCJob, reason, message string) // records an Event of one of them
	Log       zerolog.Logger
	Now       func() time.Time

	mu       sync.Mutex
	known    bool
	at       *api
	refusals map[types.UID]refusal       // of HTCJobs
	line     fairqueue.Queue             // keys of Elsewhere
	left     map[string]*v1alpha1.HTCJob // by key: they are no longer in Elsewhere
	told     map[types.UID]time.Time     // when a Workload was last told that jobs have ended
}

// api is Kueue's API as it is served.
type api struct {
	version   schema.GroupVersion
	workloads dynamic.NamespaceableResourceInterface
	classes   dynamic.ResourceInterface
	index     cache.Indexer
}

// state returns Kueue's API, nil if there is none, and whether that is known.
func (k *Kueue) state() (at *api, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at, k.known
}

func (k *Kueue) set(at *api) {
	k.mu.Lock()
	k.at, k.known = at, true
	k.mu.Unlock()
	k.Changed("", "")
	if at == nil {
		return
	}
	// Those of HTCJobs that have ended, too: they may not have been told.
	for _, object := range at.index.List() {
		k.tell(object)
	}
	for _, key := range k.Elsewhere.GetStore().ListKeys() {
		k.line.Add(key)
	}
}

// tell has the HTCJob of a Workload looked at.
func (k *Kueue) tell(object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	if w, is := object.(metav1.Object); is {
		if owner := metav1.GetControllerOf(w); owner != nil {
			key := w.GetNamespace() + "/" + owner.Name
			k.Changed(owner.Kind, key)
			if owner.Kind == v1alpha1.Kind {
				k.line.Add(key)
			}
		}
	}
}

// refusal is why an HTCJob has no Workload.
type refusal struct {
	why string
	at  time.Time
}

// refused keeps why an HTCJob has no Workload; nil: it has one. What is old is of HTCJobs that are gone, as others are
// tried again.
func (k *Kueue) refused(job types.UID, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	maps.DeleteFunc(
		k.refusals,
		func(of types.UID, r refusal) bool { return of == job || now.Sub(r.at) > 10*time.Minute },
	)
	if why == nil {
		return
	}
	if k.refusals == nil {
		k.refusals = map[types.UID]refusal{}
	}
	k.refusals[job] = refusal{why.Error(), now}
}

func (k *Kueue) refusal(job types.UID) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refusals[job].why
}

// betweenEnds is how often a Workload is told at most that jobs have ended, since thousands may end within a second.
// The next look at the HTCJob, at the latest at a resync, tells the rest.
const betweenEnds = 2 * time.Second

// may reports whether a Workload may be told now that jobs have ended.
func (k *Kueue) may(workload types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	if k.told == nil {
		k.told = map[types.UID]time.Time{}
	}
	if now.Sub(k.told[workload]) < betweenEnds {
		return false
	}
	maps.DeleteFunc(k.told, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= betweenEnds })
	k.told[workload] = now
	return true
}

// lookAgain is how often it is asked whether Kueue's API is there.
const lookAgain = 30 * time.Second

// Run follows Kueue's API and the Workloads of HTCJobs until ctx ends.
func (k *Kueue) Run(ctx context.Context) {
	k.line = fairqueue.New(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
	go k.runElsewhere(ctx)
	var served schema.GroupVersion // whose Workloads are watched; empty: none are
	stop := func() {}
	defer func() { stop() }()
	for wait := time.Duration(0); ; wait = lookAgain {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		is, err := k.served()
		at, known := k.state()
		switch {
		case err != nil:
			k.Log.Warn().Err(err).Msg("whether Kueue is there is not known")
		case known && is == served && is.Empty() == (at == nil):
		case is.Empty():
			stop()
			served = is
			k.Log.Info().Msg("there is no Kueue: what names a queue does not wait for it")
			k.set(nil)
		default:
			stop()
			served = schema.GroupVersion{}
			watching, cancel := context.WithCancel(ctx)
			stop = cancel
			if at := k.watch(watching, is); at != nil {
				served = is
				k.Log.Info().Str("version", is.Version).Msg("what names a queue of Kueue's waits for it")
				k.set(at)
			}
		}
	}
}

// served returns the best version of Kueue's API that is served, an empty one if none is.
func (k *Kueue) served() (schema.GroupVersion, error) {
	for _, v := range versions {
		list, err := k.Discovery.ServerResourcesForGroupVersion(v.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return v, err
		}
		for _, r := range list.APIResources {
			if r.Name == "workloads" {
				return v, nil
			}
		}
	}
	return schema.GroupVersion{}, nil
}

// byOwner is the index of Workloads by the UID of their HTCJob.
const byOwner = "owner"

// watch returns the API once its Workloads are known, nil if ctx ends before, or another version is served, or none.
func (k *Kueue) watch(ctx context.Context, v schema.GroupVersion) *api {
	workloads := v.WithResource("workloads")
	informer := dynamicinformer.NewFilteredDynamicInformer(
		k.Client,
		workloads,
		k.Namespace,
		0,
		cache.Indexers{byOwner: func(object any) ([]string, error) {
			return []string{object.(metav1.Object).GetLabels()[uidLabel]}, nil
		}},
		func(o *metav1.ListOptions) { o.LabelSelector = ourLabel },
	).Informer()
	_, err := informer.AddEventHandler(
		cache.ResourceEventHandlerFuncs{
			AddFunc:    k.tell,
			UpdateFunc: func(_, now any) { k.tell(now) },
			DeleteFunc: k.tell,
		},
	)
	if err != nil {
		k.Log.Error().Err(err).Msg("Kueue's Workloads are not watched")
		return nil
	}
	go informer.RunWithContext(ctx)
	for !listed(ctx, informer) {
		if is, err := k.served(); ctx.Err() != nil || err == nil && is != v {
			return nil
		}
	}
	return &api{
		version:   v,
		workloads: k.Client.Resource(workloads),
		classes:   k.Client.Resource(v.WithResource("workloadpriorityclasses")),
		index:     informer.GetIndexer(),
	}
}

// listed waits for the objects of an informer to be known, and reports whether they are. It waits no longer than
// lookAgain: Kueue may go before they could be listed.
func listed(ctx context.Context, informer cache.SharedIndexInformer) bool {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	return cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
}

// of returns the Workloads of an HTCJob.
func (a *api) of(job *v1alpha1.HTCJob) (all []*workload) {
	objects, err := a.index.ByIndex(byOwner, string(job.UID))
	if err != nil {
		return nil // there is no such index
	}
	if name := prebuilt(job); name != "" {
		object, is, _ := a.index.GetByKey(job.Namespace + "/" + name)
		if is && metav1.GetControllerOf(object.(metav1.Object)) == nil {
			objects = append(objects, object)
		}
	}
	for _, object := range objects {
		if w, err := read(object.(*unstructured.Unstructured)); err == nil && w.DeletionTimestamp == nil &&
			w.Namespace == job.Namespace {
			all = append(all, w)
		}
	}
	return all
}
