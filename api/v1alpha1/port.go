package v1alpha1

// PortNumber is the number of a port on which a job listens, and of the Service that leads to it.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type PortNumber int32

// JobPort is a port on which a job listens.
type JobPort struct {
	// Port is the number there, and of the Service.
	Port PortNumber `json:"port"`

	// Proc is the job's number, as in status.jobid.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999
	Proc int32 `json:"proc,omitempty"`
}

// WorkflowPort is a port on which a node of a workflow listens. A port that names no node is left out of the Service,
// and an Event says what to write instead.
type WorkflowPort struct {
	// Port is the number there, and of the Service.
	Port PortNumber `json:"port"`

	// Step is the node's step, or spec.finally.
	// +optional
	Step StepName `json:"step,omitempty"`

	// Sequence is the node's sequence, where its step runs in each; 0 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99999
	Sequence int32 `json:"sequence,omitempty"`

	// Index is the node's number within forEach of its step, or among its nodes of spec.graph; 0 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99999
	Index int32 `json:"index,omitempty"`

	// Node is the name of a node of spec.graph, in place of step, sequence and index.
	// +optional
	Node NodeName `json:"node,omitempty"`
}
