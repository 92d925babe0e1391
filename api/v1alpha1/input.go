package v1alpha1

import "k8s.io/apimachinery/pkg/util/intstr"

// Input is a file that is in the script's directory before the script starts.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMapKeyRef), has(self.secretKeyRef), has(self.jobRef), has(self.artifact), has(self.url), has(self.upload)].filter(x, x).size() == 1",message="an input needs exactly one source: configMapKeyRef, secretKeyRef, jobRef, artifact, url or upload"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.?optional.orValue(false)",fieldPath=".optional",message="an input from a url cannot be optional: HTCondor holds a job whose file it cannot fetch"
// +kubebuilder:validation:XValidation:rule="!has(self.unpack) || !has(self.secretKeyRef)",fieldPath=".unpack",message="a file of a Secret is not unpacked: let the script do that"
type Input struct {
	// Name is what the file is called in the script's directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.+-]*$')",message="an input's name must be letters, digits and _ . + -, and begin with a letter, a digit or _: the script can move the file into a directory"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(script|token|htcd-send|job[.]sh|job[.]sub|condor_exec[.]exe|tmp|var|_condor.*)$')",message="an input must not be called script, token, htcd-send, job.sh, job.sub, condor_exec.exe, tmp or var, nor begin with _condor: htcd and HTCondor use these names"
	Name string `json:"name"`

	// ConfigMapKeyRef takes the file from a ConfigMap of this HTCJob's namespace. In its key, {{item.NAME}} and
	// {{proc}} are replaced for each job by a variable of its item and its number. A job gets no file if the key is
	// empty then.
	// +optional
	ConfigMapKeyRef *KeyRef `json:"configMapKeyRef,omitempty"`

	// SecretKeyRef takes it from a Secret of this HTCJob's namespace which has the
	// label htc.cern.ch/jobs=true. The file has mode 0600 and is not brought back.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.key.contains('{')",fieldPath=".key",message="the key of a Secret must be letters, digits and - _ . : it is the same for all jobs"
	SecretKeyRef *KeyRef `json:"secretKeyRef,omitempty"`

	// JobRef takes it from the output of another HTCJob of this namespace, once that has been fetched.
	// +optional
	JobRef *JobRef `json:"jobRef,omitempty"`

	// Artifact takes it from an OCI artifact, such as registry.example.org/group/model:v3,
	// of a registry that htcd's administrator allows. An artifact of several
	// files becomes a directory.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/[a-z0-9][a-z0-9._/-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[a-f0-9]+)?$')",message="the artifact must name a registry, such as registry.example.org/group/model:v3"
	// +kubebuilder:validation:XValidation:rule="self.matches('/.*[:@]')",message="the artifact needs a tag or a digest, such as :v3"
	Artifact string `json:"artifact,omitempty"`

	// URL is where the execute node itself fetches the file from, by a transfer
	// plugin of HTCondor, where the site allows its scheme. {{item.NAME}} and {{proc}} are replaced for each job by a
	// variable of its item and its number. A job gets no file if the url is empty then.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z][a-z0-9+.-]*://([A-Za-z0-9._-]+@)?[A-Za-z0-9._:\\\\x5b\\\\x5d-]*/|[{][{]item[.])[A-Za-z0-9._~%+=@:!*/{}-]*([?][A-Za-z0-9._~%+=@:!*/?&{}-]*)?$')",message="the url must be scheme://host/path of letters, digits and _ . ~ % + = @ : ! * - /, perhaps with {{item.NAME}}, {{proc}} and a query (?), and without a password; write other characters as %XX"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('file:')",message="the url must not be a file: put the path of a file that every execute node has into the script"
	URL string `json:"url,omitempty"`

	// Upload takes the file from what was uploaded into this namespace, by htcd submit --input or htcd upload:
	// sha256: and the SHA-256 of its content. It is kept while an HTCJob or HTCWorkflow names it.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[a-f0-9]{64}$')",message="the upload must be sha256: and 64 digits of 0-9 and a-f, as htcd upload prints it"
	Upload string `json:"upload,omitempty"`

	// Unpack says that the file is a tar archive, perhaps compressed by gzip, that each node unpacks before the script
	// starts: Directory, into a directory of the input's name; or Here, into the script's directory. It may hold
	// directories and regular files.
	// +optional
	Unpack Unpacking `json:"unpack,omitempty"`

	// Optional lets the jobs start without the file where there is none: the
	// ConfigMap, the Secret, the key, the upload or the artifact does not exist, or the HTCJob has
	// ended without bringing the file. Jobs that failed bring none.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Unpacking says where an archive is unpacked.
//
// +kubebuilder:validation:Enum=Directory;Here
type Unpacking string

// The places for what is in an archive.
const (
	UnpackDirectory Unpacking = "Directory"
	UnpackHere      Unpacking = "Here"
)

// KeyRef names a key of a ConfigMap or a Secret.
type KeyRef struct {
	// Name is that of the ConfigMap or the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="the name must be a Kubernetes name"
	Name string `json:"name"`

	// Key is the key whose value is the file's content.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([-._a-zA-Z0-9]|[{][{](item[.][A-Za-z_][A-Za-z0-9_]*|proc)[}][}])+$')",message="the key must be letters, digits and - _ . ; that of an input's configMapKeyRef may have {{item.NAME}} and {{proc}}, too"
	Key string `json:"key"`
}

// The words that a jobRef's proc may be.
const (
	ProcSame = "Same"
	ProcAll  = "All"
)

// JobRef names a file that an HTCJob has brought back.
type JobRef struct {
	// Name is that of the HTCJob.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="the name must be a Kubernetes name"
	Name string `json:"name"`

	// Path is where its jobs left the file, relative to their scripts' directory; _condor_stdout and _condor_stderr are
	// their standard output and error. {{item.NAME}} and {{proc}} are replaced for each job by a variable of its item
	// and its number. A job gets no file if the path is empty then.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.]{0,2}(/|$)')",message="the path must be relative, without '.', '..' and empty parts"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="the path must be one line without control characters"
	Path string `json:"path"`

	// Proc says of which of its jobs: a number; Same: every job gets the file of the job
	// with its own number; All: every job gets a directory of the input's name
	// with a file for each, called by its number. It may be absent if there is only one.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(Same|All)$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0 && self < 1000000",message="proc must be Same, All, or the number of a job"
	Proc *intstr.IntOrString `json:"proc,omitempty"`
}
