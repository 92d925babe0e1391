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

// watch keeps the workflow's HTCJobs in a store, and calls tell when one of them, or the task set, has changed in a way
// that matters.
func (c cluster) watch(ctx context.Context, tell func()) (jobs cache.Store, synced []cache.InformerSynced) {
	ours := labels.SelectorFromSet(labels.Set{workflowLabel: c.workflow}).String()
	this := fields.OneTermEqualSelector("metadata.name", c.workflow).String()
	sets := c.argo.Resource(taskSets).Namespace(c.namespace)
	for _, w := range []struct {
		example runtime.Object
		from    *cache.ListWatch
		kept    *cache.Store
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
		}, &jobs, func(before, after any) bool { return matters(before.(*v1alpha1.HTCJob), after.(*v1alpha1.HTCJob)) }},
		{&unstructured.Unstructured{}, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = this
				return sets.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = this
				return sets.Watch(ctx, o)
			},
		}, nil, func(_, _ any) bool { return true }},
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
		if w.kept != nil {
			*w.kept = store
		}
		synced = append(synced, informer.HasSynced)
		go informer.RunWithContext(ctx)
	}
	return jobs, synced
}

// matters reports whether a change of an HTCJob can change what Argo is told at once. How far it is, Argo hears
// regularly.
func matters(before, after *v1alpha1.HTCJob) bool {
	return before.Status.Phase != after.Status.Phase || before.Status.OutputFetched != after.Status.OutputFetched ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}
