package v1alpha1

// Landing says where the files of each job go, below the directory that htcd get-output is given. In each place
// {{item.NAME}}, {{proc}} and {{cluster}} are replaced by a variable of the job's item, its number, and the number of
// the newest attempt's cluster. What ends in / is a directory, in which a file keeps its name. Of a step's job,
// {{item.jobid}} is the name of its sequence, {{proc}} its number within forEach, and {{cluster}} that of its own
// cluster.
type Landing struct {
	// Directory has the files that are named nowhere else here; {{proc}} when absent, or STEP/JOBID in a step, and . is
	// the directory that get-output is given.
	// +optional
	Directory LandingPlace `json:"directory,omitempty"`

	// Stdout is the file with the standard output; stdout in the directory when absent.
	// +optional
	Stdout LandingPlace `json:"stdout,omitempty"`

	// Stderr is the file with the standard error; stderr in the directory when absent.
	// +optional
	Stderr LandingPlace `json:"stderr,omitempty"`

	// Files has places by the paths of files and directories in the script's directory, which may have {{item.NAME}}
	// and {{proc}}, too.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Files map[string]LandingPlace `json:"files,omitempty"`
}

// LandingPlace is a relative path, in which no part is .. .
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)|[\\\\x00-\\\\x1f\\\\x7f]')",message="the place must be a relative path without .. and control characters: get-output writes only below its directory"
type LandingPlace string
