package argoplugin

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// kind is one of the two that steps are for.
type kind struct {
	key            string // the field of a template's plugin
	name, resource string
}

var (
	jobKind      = &kind{"htcjob", v1alpha1.Kind, v1alpha1.Resource}
	workflowKind = &kind{"htcworkflow", v1alpha1.WorkflowKind, v1alpha1.WorkflowResource}
	kinds        = []*kind{jobKind, workflowKind}
)

// object is an HTCJob, or an HTCWorkflow seen as one whose jobs are its nodes.
type object struct {
	*kind
	metav1.ObjectMeta
	Status v1alpha1.HTCJobStatus
	result bool // the spec asks for one
}

// objectOf returns nil for anything but an HTCJob or HTCWorkflow.
func objectOf(of any) *object {
	switch of := of.(type) {
	case *v1alpha1.HTCJob:
		return &object{jobKind, of.ObjectMeta, of.Status, of.Spec.Result != ""}
	case *v1alpha1.HTCWorkflow:
		return &object{workflowKind, of.ObjectMeta, of.Status.AsJobs(), of.Spec.Result != ""}
	}
	return nil
}

// reference is what identifies one in its namespace.
type reference struct {
	kind *kind
	name string
}

func (o *object) reference() reference { return reference{o.kind, o.Name} }
