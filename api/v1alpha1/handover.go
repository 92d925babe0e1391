package v1alpha1

// Handover says how what the jobs leave gets to whoever waits for the end.
type Handover struct {
	// Result names what each job leaves that status.result shows: stdout, or a file's path in the script's directory.
	// Of an HTCWorkflow these are the jobs of the last of its steps, finally left out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]') && !self.matches('(^|/)[.]{0,2}(/|$)')",message="the result must be stdout, or a file's path below the script's directory, such as out/fit.json, without control characters"
	Result string `json:"result,omitempty"`

	// CompleteAfterOutput makes the condition Complete and the phase Succeeded wait until the
	// jobs' output is here, or it is certain that some of it never will be.
	// +optional
	CompleteAfterOutput bool `json:"completeAfterOutput,omitempty"`
}
