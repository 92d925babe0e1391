package apiserver

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// HTCJobs changes HTCJobs in the apiserver. Every patch names the UID, so it cannot change a younger object of the same
// name.
type HTCJobs struct{ Client *v1alpha1.Client }

func (o HTCJobs) AddFinalizer(ctx context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error) {
	if slices.Contains(job.Finalizers, v1alpha1.Finalizer) {
		return o.current(ctx, job)
	}
	return o.setFinalizers(ctx, job, func(list []string) []string {
		return append(slices.Clone(list), v1alpha1.Finalizer)
	})
}

func (o HTCJobs) RemoveFinalizer(ctx context.Context, job *v1alpha1.HTCJob) error {
	_, err := o.setFinalizers(ctx, job, func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return f == v1alpha1.Finalizer })
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// setFinalizers replaces the whole list and names the version it was read from, so that nobody else's finalizer is lost.
// The first try uses the cached version, which is usually the present one.
func (o HTCJobs) setFinalizers(ctx context.Context, job *v1alpha1.HTCJob, change func([]string) []string) (*v1alpha1.HTCJob, error) {
	var patched *v1alpha1.HTCJob
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": job.UID, "resourceVersion": job.ResourceVersion, "finalizers": change(job.Finalizers),
		}})
		if err != nil {
			return err
		}
		patched, err = o.Client.HTCJobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		current, getErr := o.current(ctx, job)
		if getErr != nil {
			return getErr
		}
		job = current
		return err
	})
	return patched, err
}

// current asks the apiserver for the same object; if another has taken its name, it is not found.
func (o HTCJobs) current(ctx context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error) {
	current, err := o.Client.HTCJobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if err == nil && current.UID != job.UID {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource).GroupResource(), job.Name)
	}
	return current, err
}

// SetStatus replaces the whole status. htcd is its only writer, so the version does not matter.
func (o HTCJobs) SetStatus(ctx context.Context, job *v1alpha1.HTCJob, status v1alpha1.HTCJobStatus) (*v1alpha1.HTCJob, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": job.UID},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return nil, err
	}
	return o.Client.HTCJobs(job.Namespace).Patch(ctx, job.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
}

func (o HTCJobs) Delete(ctx context.Context, job *v1alpha1.HTCJob) error {
	return o.Client.HTCJobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
}

func (o HTCJobs) Exists(ctx context.Context, namespace, name, uid string) (bool, error) {
	job, err := o.Client.HTCJobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(job.UID) == uid, err
}

// listed is the maximum number of objects in one answer of the apiserver; each may have 256 KiB of script.
const listed = 200

func (o HTCJobs) Each(ctx context.Context, namespace, name string, fn func(*v1alpha1.HTCJob) error) error {
	opts := metav1.ListOptions{Limit: listed}
	if name != "" {
		opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	for {
		list, err := o.Client.HTCJobs(namespace).List(ctx, opts)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := fn(&list.Items[i]); err != nil {
				return err
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return nil
		}
	}
}
