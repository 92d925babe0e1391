package v1alpha1

// Execution is how the jobs of an HTCJob, or of a step, run on machines.
type Execution struct {
	// Checkpoint lets a job go on where it was when it is moved to another machine.
	// +optional
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`

	// Nodes is on how many machines each job runs at once, as one job of HTCondor's parallel universe: the script is
	// started on each of them, and mpirun reaches all. It needs machines with a dedicated scheduler. An HTCJob with
	// nodes has a single job.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=256
	Nodes *int32 `json:"nodes,omitempty"`
}
