package v1alpha1

// Deadlines are how long each job may be in a state before it is removed and has failed.
type Deadlines struct {
	// HeldDeadlineSeconds is how long a job may be on hold before it is removed and has failed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	HeldDeadlineSeconds *int64 `json:"heldDeadlineSeconds,omitempty"`

	// IdleDeadlineSeconds is how long a job may wait for a slot before it is removed and has failed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	IdleDeadlineSeconds *int64 `json:"idleDeadlineSeconds,omitempty"`

	// RunDeadlineSeconds is how long a job may run before it is removed and has failed, reason RunDeadlineExceeded. The
	// time starts again each time that HTCondor starts the job, and does not include the transfer of files.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	RunDeadlineSeconds *int64 `json:"runDeadlineSeconds,omitempty"`
}
