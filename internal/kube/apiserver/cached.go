package apiserver

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Lookup finds an object by its name and reports whether there is one.
type Lookup[O metav1.Object] func(ctx context.Context, namespace, name string) (object O, there bool, err error)

// LookupHTCJobs finds HTCJobs in the cache of those of the watched namespace ("": of all).
func LookupHTCJobs(c *v1alpha1.Client, cached cache.Store, watched string) Lookup[*v1alpha1.HTCJob] {
	return lookup(cached, watched, func(ctx context.Context, namespace, name string) (*v1alpha1.HTCJob, error) {
		return c.HTCJobs(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// LookupHTCWorkflows is LookupHTCJobs for HTCWorkflows.
func LookupHTCWorkflows(c *v1alpha1.Client, cached cache.Store, watched string) Lookup[*v1alpha1.HTCWorkflow] {
	return lookup(cached, watched, func(ctx context.Context, namespace, name string) (*v1alpha1.HTCWorkflow, error) {
		return c.Workflows(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// lookup asks the apiserver for what the cache does not have: it may have been created a moment ago.
func lookup[O metav1.Object](
	cached cache.Store,
	watched string,
	get func(ctx context.Context, namespace, name string) (O, error),
) Lookup[O] {
	return func(ctx context.Context, namespace, name string) (object O, there bool, err error) {
		stored, there, err := cached.GetByKey(namespace + "/" + name)
		if err != nil {
			return object, false, err
		}
		if there {
			return stored.(O), true, nil
		}
		if watched != metav1.NamespaceAll && namespace != watched {
			return object, false, nil
		}
		object, err = get(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			return object, false, nil
		}
		return object, err == nil, err
	}
}
