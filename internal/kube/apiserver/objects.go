package apiserver

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Objects changes objects of one kind, with their lists and statuses, in the apiserver. Every patch names the UID, so
// it cannot change a younger object of the same name.
type Objects[O object, L list, S any] struct {
	of       func(namespace string) client[O, L]
	resource string
	wrote    func(error)
}

type object interface {
	metav1.Object
	runtime.Object
}

type list interface {
	metav1.ListInterface
	runtime.Object
}

type client[O object, L list] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (O, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Patch(
		ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions,
		subresources ...string,
	) (O, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// The kinds.
type (
	Jobs      = Objects[*v1alpha1.HTCJob, *v1alpha1.HTCJobList, v1alpha1.HTCJobStatus]
	Workflows = Objects[*v1alpha1.HTCWorkflow, *v1alpha1.HTCWorkflowList, v1alpha1.HTCWorkflowStatus]
	Pools     = Objects[*v1alpha1.HTCPool, *v1alpha1.HTCPoolList, v1alpha1.HTCPoolStatus]
)

// HTCJobs returns the HTCJobs of an apiserver; wrote is called after every write of a status, for metrics.
func HTCJobs(c *v1alpha1.Client, wrote func(error)) Jobs {
	of := func(namespace string) client[*v1alpha1.HTCJob, *v1alpha1.HTCJobList] { return c.HTCJobs(namespace) }
	return Jobs{of, v1alpha1.Resource, wrote}
}

// HTCWorkflows is HTCJobs for workflows.
func HTCWorkflows(c *v1alpha1.Client, wrote func(error)) Workflows {
	of := func(namespace string) client[*v1alpha1.HTCWorkflow, *v1alpha1.HTCWorkflowList] {
		return c.Workflows(namespace)
	}
	return Workflows{of, v1alpha1.WorkflowResource, wrote}
}

// HTCPools is HTCJobs for pools.
func HTCPools(c *v1alpha1.Client, wrote func(error)) Pools {
	of := func(string) client[*v1alpha1.HTCPool, *v1alpha1.HTCPoolList] { return c.Pools() }
	return Pools{of, v1alpha1.PoolResource, wrote}
}

// AddFinalizer returns the object as it is in the apiserver now.
func (o Objects[O, L, S]) AddFinalizer(ctx context.Context, object O) (O, error) {
	if slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) {
		return o.current(ctx, object)
	}
	return o.setFinalizers(ctx, object, func(list []string) []string {
		return append(slices.Clone(list), v1alpha1.Finalizer)
	})
}

// RemoveFinalizer implements reconciler.Objects, as do the methods below.
func (o Objects[O, L, S]) RemoveFinalizer(ctx context.Context, object O) error {
	_, err := o.setFinalizers(ctx, object, func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return f == v1alpha1.Finalizer })
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// setFinalizers replaces the whole list and names the version it was read from, so that nobody else's finalizer is
// lost. The first try uses the cached version, which is usually the present one.
func (o Objects[O, L, S]) setFinalizers(ctx context.Context, object O, change func([]string) []string) (O, error) {
	var patched O
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid":             object.GetUID(),
			"resourceVersion": object.GetResourceVersion(),
			"finalizers":      change(object.GetFinalizers()),
		}})
		if err != nil {
			return err
		}
		patched, err = o.of(object.GetNamespace()).
			Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		current, getErr := o.current(ctx, object)
		if getErr != nil {
			return getErr
		}
		object = current
		return err
	})
	return patched, err
}

// current asks the apiserver for the same object; if another has taken its name, it is not found.
func (o Objects[O, L, S]) current(ctx context.Context, object O) (O, error) {
	current, err := o.of(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
	if err == nil && current.GetUID() != object.GetUID() {
		return current, apierrors.NewNotFound(
			v1alpha1.GroupVersion.WithResource(o.resource).GroupResource(),
			object.GetName(),
		)
	}
	return current, err
}

// SetStatus replaces the whole status. htcd is its only writer, so the version does not matter.
func (o Objects[O, L, S]) SetStatus(ctx context.Context, object O, status S) (O, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": object.GetUID()},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return object, err
	}
	written, err := o.of(object.GetNamespace()).Patch(
		ctx, object.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{}, "status",
	)
	o.wrote(err)
	return written, err
}

// Delete deletes exactly the given version of the object.
func (o Objects[O, L, S]) Delete(ctx context.Context, object O) error {
	return o.of(object.GetNamespace()).Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{
			UID:             new(object.GetUID()),
			ResourceVersion: new(object.GetResourceVersion()),
		},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
}

// Exists asks the apiserver whether the object with that UID is still there.
func (o Objects[O, L, S]) Exists(ctx context.Context, namespace, name, uid string) (bool, error) {
	object, err := o.of(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(object.GetUID()) == uid, err
}

// Version returns the version that the apiserver, never a cache, has of the objects of a namespace, empty for all.
func (o Objects[O, L, S]) Version(ctx context.Context, namespace string) (string, error) {
	list, err := o.of(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.GetResourceVersion(), nil
}

// listed is how many objects are read from the apiserver at a time: each may be large.
const listed = 200

// Each calls fn for every object with that namespace and name, either empty for any, that no other controller runs.
func (o Objects[O, L, S]) Each(ctx context.Context, namespace, name string, fn func(O) error) error {
	opts := metav1.ListOptions{Limit: listed}
	if name != "" {
		opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	for {
		list, err := o.of(namespace).List(ctx, opts)
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(object runtime.Object) error {
			if !v1alpha1.Ours(object) {
				return nil
			}
			return fn(object.(O))
		})
		if opts.Continue = list.GetContinue(); err != nil || opts.Continue == "" {
			return err
		}
	}
}
