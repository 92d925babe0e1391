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

// watch keeps the workflow's HTCJobs and HTCWorkflows in stores, and calls tell when one of them, or the task set, has changed in a way
// that matters.
func (c cluster) watch(ctx context.Context, tell func()) (stores []cache.Store, synced []cache.InformerSynced) {
	ours := labels.SelectorFromSet(labels.Set{workflowLabel: c.workflow}).String()
	this := fields.OneTermEqualSelector("metadata.name", c.workflow).String()
	sets := c.argo.Resource(taskSets).Namespace(c.namespace)
	for _, w := range []struct {
		example runtime.Object
		from    *cache.ListWatch
		kept    bool
		matters func(before, after any) bool
	}{
		{&v1alpha1.HTCJob{}, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = ours
				return c.jobs.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = ours
				return c.jobs.Watch(ctx, o)
			},
		}, true, matters},
		{&v1alpha1.HTCWorkflow{}, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = ours
				return c.workflows.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = ours
				return c.workflows.Watch(ctx, o)
			},
		}, true, matters},
		{&unstructured.Unstructured{}, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = this
				return sets.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = this
				return sets.Watch(ctx, o)
			},
		}, false, func(_, _ any) bool { return true }},
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

// matters reports whether a change of an object can change what Argo is told at once. How far it is, Argo hears
// regularly.
func matters(before, after any) bool {
	was, is := objectOf(before), objectOf(after)
	return was.Status.Phase != is.Status.Phase || was.Status.OutputFetched != is.Status.OutputFetched ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)
}
