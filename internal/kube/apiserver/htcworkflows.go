package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// HTCWorkflows changes HTCWorkflows in the apiserver.
type HTCWorkflows struct{ Client *v1alpha1.Client }

func (o HTCWorkflows) of(namespace string) objects[*v1alpha1.HTCWorkflow] {
	return objects[*v1alpha1.HTCWorkflow]{o.Client.Workflows(namespace), v1alpha1.WorkflowResource}
}

func (o HTCWorkflows) AddFinalizer(ctx context.Context, w *v1alpha1.HTCWorkflow) (*v1alpha1.HTCWorkflow, error) {
	return o.of(w.Namespace).addFinalizer(ctx, w)
}

func (o HTCWorkflows) RemoveFinalizer(ctx context.Context, w *v1alpha1.HTCWorkflow) error {
	return o.of(w.Namespace).removeFinalizer(ctx, w)
}

func (o HTCWorkflows) SetStatus(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	status v1alpha1.HTCWorkflowStatus,
) (*v1alpha1.HTCWorkflow, error) {
	return o.of(w.Namespace).setStatus(ctx, w, status)
}

func (o HTCWorkflows) Delete(ctx context.Context, w *v1alpha1.HTCWorkflow) error {
	return o.of(w.Namespace).delete(ctx, w)
}

// UIDs lists those of the HTCWorkflows of a namespace, of all with "".
func (o HTCWorkflows) UIDs(ctx context.Context, namespace string) (map[string]bool, error) {
	there, opts := map[string]bool{}, metav1.ListOptions{Limit: listed}
	for {
		list, err := o.Client.Workflows(namespace).List(ctx, opts)
		if err != nil {
			return nil, err
		}
		for _, w := range list.Items {
			if !w.Spec.Elsewhere() {
				there[string(w.UID)] = true
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return there, nil
		}
	}
}

func (o HTCWorkflows) Exists(ctx context.Context, namespace, name, uid string) (bool, error) {
	return o.of(namespace).exists(ctx, name, uid)
}
