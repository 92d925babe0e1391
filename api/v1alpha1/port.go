package v1alpha1

// JobPort is a port on which a job listens.
type JobPort struct {
	// Port is the number there, and of the Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// Proc is the job's number, as in status.jobId.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999
	Proc int32 `json:"proc,omitempty"`
}
