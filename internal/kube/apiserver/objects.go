package apiserver

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// objects changes objects of one kind and namespace in the apiserver. Every patch names the UID, so it cannot change a
// younger object of the same name.
type objects[O metav1.Object] struct {
	client interface {
		Get(ctx context.Context, name string, opts metav1.GetOptions) (O, error)
		Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (O, error)
		Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	}
	resource string
}

func (o objects[O]) addFinalizer(ctx context.Context, object O) (O, error) {
	if slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) {
		return o.current(ctx, object)
	}
	return o.setFinalizers(ctx, object, func(list []string) []string {
		return append(slices.Clone(list), v1alpha1.Finalizer)
	})
}

func (o objects[O]) removeFinalizer(ctx context.Context, object O) error {
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
func (o objects[O]) setFinalizers(ctx context.Context, object O, change func([]string) []string) (O, error) {
	var patched O
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": change(object.GetFinalizers()),
		}})
		if err != nil {
			return err
		}
		patched, err = o.client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
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
func (o objects[O]) current(ctx context.Context, object O) (O, error) {
	current, err := o.client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err == nil && current.GetUID() != object.GetUID() {
		return current, apierrors.NewNotFound(
			v1alpha1.GroupVersion.WithResource(o.resource).GroupResource(),
			object.GetName(),
		)
	}
	return current, err
}

// setStatus replaces the whole status. htcd is its only writer, so the version does not matter.
func (o objects[O]) setStatus(ctx context.Context, object O, status any) (O, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": object.GetUID()},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return object, err
	}
	return o.client.Patch(ctx, object.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
}

func (o objects[O]) delete(ctx context.Context, object O) error {
	return o.client.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{
			UID:             new(object.GetUID()),
			ResourceVersion: new(object.GetResourceVersion()),
		},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
}

func (o objects[O]) exists(ctx context.Context, name, uid string) (bool, error) {
	object, err := o.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(object.GetUID()) == uid, err
}
