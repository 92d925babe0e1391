package argoplugin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// watch keeps the workflow's HTCJobs and HTCWorkflows in stores, and calls tell when one of them, or the task set, has
// changed in a way that matters.
func (c cluster) watch(ctx context.Context, tell func()) (stores []cache.Store, synced []cache.InformerSynced) {
	ours := labels.SelectorFromSet(labels.Set{workflowLabel: c.workflow}).String()
	this := fields.OneTermEqualSelector("metadata.name", c.workflow).String()
	sets := c.argo.Resource(taskSets).Namespace(c.namespace)
	labelled := func(o *metav1.ListOptions) { o.LabelSelector = ours }
	named := func(o *metav1.ListOptions) { o.FieldSelector = this }
	for _, w := range []struct {
		example runtime.Object
		from    *cache.ListWatch
		kept    bool
		matters func(before, after any) bool
	}{
		{&v1alpha1.HTCJob{}, some(c.jobs, labelled), true, matters},
		{&v1alpha1.HTCWorkflow{}, some(c.workflows, labelled), true, matters},
		{&unstructured.Unstructured{}, some(sets, named), false, func(_, _ any) bool { return true }},
	} {
		store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: w.from, ObjectType: w.example,
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { tell() },
				DeleteFunc: func(any) { tell() },
				UpdateFunc: func(before, after any) {
					if w.matters(before, after) {
						tell()
					}
				},
			},
		})
		if w.kept {
			stores = append(stores, store)
		}
		synced = append(synced, informer.HasSynced)
		go informer.RunWithContext(ctx)
	}
	return stores, synced
}

// reader lists and watches objects.
type reader[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// some are those of the objects that a selector selects.
func some[L runtime.Object](of reader[L], selector func(*metav1.ListOptions)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			selector(&o)
			return of.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			selector(&o)
			return of.Watch(ctx, o)
		},
	}
}

// matters reports whether a change of an object can change what Argo is told at once. How far it is, Argo hears
// regularly.
func matters(before, after any) bool {
	was, is := objectOf(before), objectOf(after)
	return was.Status.Phase != is.Status.Phase || was.Status.OutputFetched != is.Status.OutputFetched ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)
}
