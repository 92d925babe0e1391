package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// APIObjects is Objects over the apiserver. Every patch names the UID, so that it cannot hit a younger object of the same name.
type APIObjects struct{ Client *v1alpha1.Client }

func (o APIObjects) AddFinalizer(ctx context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error) {
	if slices.Contains(job.Finalizers, v1alpha1.Finalizer) {
		current, err := o.Client.HTCJobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
		if err == nil && current.UID != job.UID {
			err = fmt.Errorf("%s/%s was replaced meanwhile", job.Namespace, job.Name)
		}
		return current, err
	}
	return o.setFinalizers(ctx, job, append(slices.Clone(job.Finalizers), v1alpha1.Finalizer))
}

func (o APIObjects) RemoveFinalizer(ctx context.Context, job *v1alpha1.HTCJob) error {
	rest := slices.DeleteFunc(slices.Clone(job.Finalizers), func(f string) bool { return f == v1alpha1.Finalizer })
	_, err := o.setFinalizers(ctx, job, rest)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// setFinalizers replaces the whole list, and so names the version it was read from: another's finalizer is never lost.
func (o APIObjects) setFinalizers(ctx context.Context, job *v1alpha1.HTCJob, list []string) (*v1alpha1.HTCJob, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": job.UID, "resourceVersion": job.ResourceVersion, "finalizers": list,
	}})
	if err != nil {
		return nil, err
	}
	return o.Client.HTCJobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// SetStatus replaces the whole status. htcd is its only writer, so the version does not matter.
func (o APIObjects) SetStatus(ctx context.Context, job *v1alpha1.HTCJob, status v1alpha1.HTCJobStatus) (*v1alpha1.HTCJob, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": job.UID},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return nil, err
	}
	return o.Client.HTCJobs(job.Namespace).Patch(ctx, job.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
}

func (o APIObjects) Exists(ctx context.Context, namespace, name, uid string) (bool, error) {
	job, err := o.Client.HTCJobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(job.UID) == uid, err
}
