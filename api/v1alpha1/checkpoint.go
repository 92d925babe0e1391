package v1alpha1

// Checkpoint is how a script that stores what it has done so far goes on from there. It ends with the exit code
// whenever it has written the files. That is no end of its job: HTCondor brings the files to the schedd and starts the
// script again, at once in the same directory, or with the last files on another machine if the job is evicted. Or,
// with onEviction, it writes them when it is asked to end.
//
// +kubebuilder:validation:XValidation:rule="has(self.onEviction) && self.onEviction ? !has(self.exitCode) && !has(self.files) : has(self.exitCode) && has(self.files)",message="a checkpoint has exitCode and files, or onEviction: true and neither of them"
type Checkpoint struct {
	// ExitCode is the return code with which the script says that it has written a checkpoint, such as 85. It can be
	// neither that of a success nor one after which a job is tried again.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=124
	ExitCode int32 `json:"exitCode,omitempty"`

	// Files are those that the script needs to go on. What else it leaves is there only while it stays on its machine.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Files []CheckpointFile `json:"files,omitempty"`

	// OnEviction keeps the job's output when the job is evicted: the script is asked to end (SIGTERM), HTCondor keeps
	// what it leaves, and it finds that in its directory when it is started again. Nothing is kept if the machine is
	// lost, or the script has to be killed.
	// +optional
	OnEviction bool `json:"onEviction,omitempty"`
}

// CheckpointFile is the path of a file or a directory in the script's directory.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=200
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.+=@%~:!-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@%~:!-]*)*$')",message="a file of a checkpoint must be a path in the script's directory of letters, digits and _ . + = @ % ~ : ! -; no part of it may begin with a dot, and it must not end in /; HTCondor takes no patterns here: for files whose names change name their directory"
// +kubebuilder:validation:XValidation:rule="!self.matches('^(script|token|htcd-send|job[.]sh|job[.]sub|condor_exec[.]exe|tmp|var|_condor[^/]*)(/|$)')",message="a file of a checkpoint must not be called script, token, htcd-send, job.sh, job.sub, condor_exec.exe, tmp or var, nor begin with _condor: htcd and HTCondor use these names"
type CheckpointFile string
