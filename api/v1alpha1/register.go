package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Kind is the kind of a namespaced resource of this group, Resource its plural name, as URLs and RBAC rules have
	// it.
	Kind     = "HTCJob"
	Resource = "htcjobs"

	// WorkflowKind is the kind of the other namespaced resource, WorkflowResource its plural name.
	WorkflowKind     = "HTCWorkflow"
	WorkflowResource = "htcworkflows"

	// PoolResource is the plural name of HTCPool, which is cluster-scoped.
	PoolResource = "htcpools"
)

// GroupVersion is the group and version of this package's types.
var GroupVersion = schema.GroupVersion{Group: "htc.cern.ch", Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		GroupVersion,
		&HTCJob{},
		&HTCJobList{},
		&HTCPool{},
		&HTCPoolList{},
		&HTCWorkflow{},
		&HTCWorkflowList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
