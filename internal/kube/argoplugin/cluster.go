package argoplugin

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"htc.cern.ch/htcd/api/v1alpha1"
)

var (
	argo      = schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}
	workflows = argo.WithResource("workflows")
	taskSets  = argo.WithResource("workflowtasksets")
)

// taskSet is the part of a WorkflowTaskSet that is used.
type taskSet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Tasks map[string]template `json:"tasks"`
	} `json:"spec"`
	Status struct {
		Nodes map[string]report `json:"nodes"`
	} `json:"status"`
}

// completedLabel is on the task set of a workflow that Argo has finished.
const completedLabel = "workflows.argoproj.io/completed"

// cluster is the namespace of the workflow, by the plugin's own account.
type cluster struct {
	namespace, workflow string
	argo                dynamic.Interface
	jobs                v1alpha1.Interface
	workflows           *gentype.ClientWithList[*v1alpha1.HTCWorkflow, *v1alpha1.HTCWorkflowList]
}

func newCluster(config *rest.Config, namespace, workflow string) (cluster, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return cluster{}, err
	}
	ours, err := v1alpha1.NewClient(config)
	if err != nil {
		return cluster{}, err
	}
	return cluster{
		namespace: namespace, workflow: workflow, argo: objects,
		jobs: ours.HTCJobs(namespace), workflows: ours.Workflows(namespace),
	}, nil
}

// run reads the workflow's identity, and what of it is over: a controller that may not write the task set's status, as
// with the roles of Argo's own manifests, never takes steps out of the task set. The workflow has no start before
// Argo's controller has written that, which may be after the task set.
func (c cluster) run(ctx context.Context) (workflow, error) {
	object, err := c.argo.Resource(workflows).Namespace(c.namespace).Get(ctx, c.workflow, metav1.GetOptions{})
	if err != nil {
		return workflow{}, fmt.Errorf("read Workflow %s: %w", c.workflow, err)
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return workflow{}, err
	}
	var is struct {
		Status struct {
			StartedAt *metav1.Time
			Phase     phase
			// Without those of a workflow that is too large for them; Argo then keeps them elsewhere.
			Nodes map[string]struct{ Phase phase }
		}
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return workflow{}, fmt.Errorf("read Workflow %s: %w", c.workflow, err)
	}
	if is.Status.StartedAt == nil {
		return workflow{}, fmt.Errorf("the Workflow %s has not been started", c.workflow)
	}
	w := workflow{
		Name:      c.workflow,
		UID:       string(object.GetUID()),
		Started:   is.Status.StartedAt.Time,
		Completed: is.Status.Phase.over(),
		Over:      map[string]bool{},
	}
	for id, node := range is.Status.Nodes {
		w.Over[id] = node.Phase.over()
	}
	return w, nil
}

// tasks reads the task set itself, not a cache: an object is deleted because its step is not there.
func (c cluster) tasks(ctx context.Context) (*taskSet, error) {
	object, err := c.argo.Resource(taskSets).Namespace(c.namespace).Get(ctx, c.workflow, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var set taskSet
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("read WorkflowTaskSet %s: %w", c.workflow, err)
	}
	return &set, nil
}

// create creates the object of a step. One that exists is left alone: the next pass judges it.
func (c cluster) create(ctx context.Context, w workflow, name string, t task) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": t.kind.name, "spec": t.Spec,
		"metadata": map[string]any{
			"name":        name,
			"labels":      map[string]any{workflowLabel: w.Name},
			"annotations": map[string]any{nodeAnnotation: t.Node},
			"ownerReferences": []any{map[string]any{
				"apiVersion": argo.String(), "kind": "Workflow", "name": w.Name, "uid": w.UID, "controller": true,
			}},
		},
	}}
	_, err := c.of(t.kind).
		Create(ctx, object, metav1.CreateOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// manager is the plugin's name in managedFields.
const manager = "htcd-argo-plugin"

// of returns the objects of a kind.
func (c cluster) of(k *kind) dynamic.ResourceInterface {
	return c.argo.Resource(v1alpha1.GroupVersion.WithResource(k.resource)).Namespace(c.namespace)
}

// get reads an object itself, not a cache.
func (c cluster) get(ctx context.Context, ref reference) (*object, error) {
	if ref.kind == workflowKind {
		flow, err := c.workflows.Get(ctx, ref.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return objectOf(flow), nil
	}
	job, err := c.jobs.Get(ctx, ref.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return objectOf(job), nil
}

// delete deletes this very object, not a younger one of its name.
func (c cluster) delete(ctx context.Context, o *object) error {
	err := c.of(o.kind).Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// report writes what becomes of steps, unless the task set has changed since it was read.
func (c cluster) report(ctx context.Context, set *taskSet, reports map[string]report) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": set.ResourceVersion},
		"status":   map[string]any{"nodes": reports},
	})
	if err != nil {
		return err
	}
	_, err = c.argo.Resource(taskSets).Namespace(c.namespace).
		Patch(ctx, c.workflow, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "status")
	return err
}
