package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HTCJob is a script that runs in a container on an HTCondor pool, once or as
// a numbered set. Its status follows the jobs in HTCondor.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=htcjobs,singular=htcjob,shortName=htcj,categories=all,scope=Namespaced
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`,description="Where the job stands."
// +kubebuilder:printcolumn:name=Active,type=integer,JSONPath=`.status.active`,description="How many of its jobs have not ended."
// +kubebuilder:printcolumn:name=Succeeded,type=integer,JSONPath=`.status.succeeded`,description="How many ended with return code 0."
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.failed`,description="How many ended otherwise."
// +kubebuilder:printcolumn:name=JobID,type=string,JSONPath=`.status.jobid[0]`,description="Id of the first job in HTCondor: cluster.proc."
// +kubebuilder:printcolumn:name=Schedd,type=string,priority=1,JSONPath=`.status.schedd`,description="The schedd that holds the jobs."
// +kubebuilder:printcolumn:name=Held,type=integer,priority=1,JSONPath=`.status.held`,description="How many are on hold in HTCondor."
// +kubebuilder:printcolumn:name=Checked,type=date,priority=1,JSONPath=`.status.lastChecked`,description="How long ago the status was last known to be true."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="How long ago the object was created."
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec || !has(oldSelf.status) || !has(oldSelf.status.active) || oldSelf.status.active == 0",fieldPath=".spec",reason=FieldValueForbidden,message="the spec cannot change while jobs are active in HTCondor: wait until they end, or delete this HTCJob (which removes them) and apply it again"
type HTCJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to run.
	// +required
	Spec HTCJobSpec `json:"spec"`

	// Status says what HTCondor has made of it. The default makes the counts
	// readable from the first moment, before anybody has looked at the object.
	// +optional
	// +kubebuilder:default={active: 0, succeeded: 0, failed: 0, phase: Pending}
	Status HTCJobStatus `json:"status,omitempty"`
}

// HTCJobList is what a list request answers.
//
// +kubebuilder:object:root=true
type HTCJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HTCJob `json:"items"`
}

// HTCJobSpec says what to run. Changing it once the jobs have ended starts a
// new attempt; changing it while they run is refused.
//
// +kubebuilder:validation:XValidation:rule="!has(self.queue) || !has(self.script.queue) || self.queue == self.script.queue",fieldPath=".queue",message="spec.queue and spec.script.queue differ: write the number once, in spec.script.queue"
type HTCJobSpec struct {
	// Name is the batch name that condor_q shows; metadata.name when absent.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="the batch name must be one line without tabs or other control characters"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x22$\\\\x5c]')",message="the batch name must not hold a double quote, a dollar sign or a backslash, which mean something to condor_submit: use letters, digits, spaces and . _ - instead"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ | $')",message="the batch name must not begin or end with a space: leave spec.name out to use metadata.name"
	Name string `json:"name,omitempty"`

	// Script is what every job runs.
	// +required
	Script Script `json:"script"`

	// Queue is the older place of script.queue and means the same.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Queue *int32 `json:"queue,omitempty"`

	// HTCOpts holds more submit commands, one per line, as in a submit file:
	// `+JobFlavour = "espresso"`, `request_memory = 2GB`.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 65536",message="htcopts must be at most 64 KiB of UTF-8"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x08\\\\x0b-\\\\x1f\\\\x7f]')",message="htcopts must not hold control characters other than tab and newline: save it with plain (Unix) line ends"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)(?:^|\\\\n)[ \\\\t]*queue(?:[ \\\\t\\\\n(]|$)')",message="htcopts must not hold a queue statement: write how many jobs you want in spec.script.queue"
	HTCOpts string `json:"htcopts,omitempty"`
}

// Script is what every job runs: `command SCRIPTFILE NUMBER`, in a container
// of the image.
type Script struct {
	// Image is a docker reference (`centos`, `registry/name:tag`), the same with
	// a scheme (docker://, oras://, library://), or an absolute path on the
	// execute nodes: a .sif file or an unpacked image, on CVMFS for example.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9/][A-Za-z0-9/._:@%+=~-]*$')",message="the image must be a docker reference such as centos or python:3.13, one that begins with docker://, oras:// or library://, or an absolute path such as /cvmfs/unpacked.cern.ch/NAME; spaces, quotes and control characters have no place in it"
	// +kubebuilder:validation:XValidation:rule="!self.contains('://') || self.matches('^(?:docker|oras|library)://[A-Za-z0-9]')",message="the image's scheme must be docker://, oras:// or library://, with a name after it; leave the scheme out for an ordinary docker image"
	Image string `json:"image"`

	// Command runs in the container, with the script's path as its first
	// argument and the job's number (0 to queue-1) as its second: bash,
	// python3, Rscript.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="the command must be one line without control characters: put more lines into script.source"
	// +kubebuilder:validation:XValidation:rule="self.matches('[^ ]')",message="the command must not be blank: write what runs the script, such as bash or python3"
	Command string `json:"command"`

	// Source is the text of the script, at most 256 KiB: every job spools its
	// own copy, so larger inputs belong on a shared file system.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 262144",message="the script must be at most 256 KiB of UTF-8: put larger inputs on a shared file system and read them from there"
	// +kubebuilder:validation:XValidation:rule="!self.contains('\\u0000')",message="the script must not hold NUL characters: encode binary data, as base64 for example"
	// +kubebuilder:validation:XValidation:rule="self.matches('[^ \\\\t\\\\r\\\\n]')",message="the script must not be blank: write at least one command"
	Source string `json:"source"`

	// Queue says how many jobs to run, 1 when absent. Each gets its number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Queue *int32 `json:"queue,omitempty"`
}
