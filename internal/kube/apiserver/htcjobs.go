package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// HTCJobs changes HTCJobs in the apiserver.
type HTCJobs struct{ Client *v1alpha1.Client }

func (o HTCJobs) of(namespace string) objects[*v1alpha1.HTCJob] {
	return objects[*v1alpha1.HTCJob]{o.Client.HTCJobs(namespace), v1alpha1.Resource}
}

func (o HTCJobs) AddFinalizer(ctx context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error) {
	return o.of(job.Namespace).addFinalizer(ctx, job)
}

func (o HTCJobs) RemoveFinalizer(ctx context.Context, job *v1alpha1.HTCJob) error {
	return o.of(job.Namespace).removeFinalizer(ctx, job)
}

func (o HTCJobs) SetStatus(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	status v1alpha1.HTCJobStatus,
) (*v1alpha1.HTCJob, error) {
	return o.of(job.Namespace).setStatus(ctx, job, status)
}

func (o HTCJobs) Delete(ctx context.Context, job *v1alpha1.HTCJob) error {
	return o.of(job.Namespace).delete(ctx, job)
}

func (o HTCJobs) Exists(ctx context.Context, namespace, name, uid string) (bool, error) {
	return o.of(namespace).exists(ctx, name, uid)
}

func (o HTCJobs) Version(ctx context.Context, namespace string) (string, error) {
	list, err := o.Client.HTCJobs(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
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
			if list.Items[i].Spec.Elsewhere() {
				continue
			}
			if err := fn(&list.Items[i]); err != nil {
				return err
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return nil
		}
	}
}
