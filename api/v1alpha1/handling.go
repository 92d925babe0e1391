package v1alpha1

// Handling is what an HTCJob and a step have alike beside what their jobs are: where files go, and how many are sent at
// a time.
type Handling struct {
	// Landing says where htcd get-output puts what the jobs bring back, below the directory that it is given. A change
	// begins no attempt.
	// +optional
	Landing *Landing `json:"landing,omitempty"`

	// Parallelism is how many of the jobs are in HTCondor's queue at a time, waiting for a slot, running, held or ended
	// until their output is here, those of a step in all sequences together; all when absent. That of an HTCJob can be
	// raised and lowered while they run: what runs goes on.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Parallelism *int32 `json:"parallelism,omitempty"`
}
