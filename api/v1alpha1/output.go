package v1alpha1

// Output is something that every job is to leave in its script's directory. A job whose script succeeds without it has
// failed, reason OutputMissing.
//
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !has(self.artifact)",message="an output goes to a url or to an artifact, not to both"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.path.matches('[*?\\\\x5b\\\\x5d]')",fieldPath=".path",message="beside a url the path must be that of one file: make a directory's files one archive"
type Output struct {
	// Path is that of a file or a directory in the script's directory. A pattern
	// with * ? [ ] stands for everything that it matches, at least one: result/*.root.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_*?\\\\x5b][A-Za-z0-9_.+=@%~:*?\\\\x5b\\\\x5d!-]*(/[A-Za-z0-9_*?\\\\x5b][A-Za-z0-9_.+=@%~:*?\\\\x5b\\\\x5d!-]*)*$')",message="an output's path must be relative to the script's directory, of letters, digits and _ . + = @ % ~ : - with * ? [ ] for others; no part of it may begin with a dot, and it must not end in /"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(script|token|htcd-send|job[.]sh|job[.]sub|condor_exec[.]exe|tmp|var|_condor[^/]*)(/|$)')",message="an output must not be called script, token, htcd-send, job.sh, job.sub, condor_exec.exe, tmp or var, nor begin with _condor: htcd and HTCondor use these names; standard output and error are always brought back"
	Path string `json:"path"`

	// URL is where the execute node writes the file to, if the script succeeds, by a transfer plugin
	// of HTCondor, instead of bringing it back. {namespace}, {name}, {attempt} and {proc} are replaced.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9+.-]*://([A-Za-z0-9._-]+@)?[A-Za-z0-9._:\\\\x5b\\\\x5d-]*(/([A-Za-z0-9._~%+@:!*-]|[{](namespace|name|attempt|proc)[}])*)+$') && !self.contains('/..') && !self.endsWith('/')",message="the url must be scheme://host/path of letters, digits and _ . ~ % + @ : ! * -, with {namespace}, {name}, {attempt} and {proc}, and without a password or a query"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('file:')",message="the url must not be a file: without a url it is brought back"
	URL string `json:"url,omitempty"`

	// Artifact is the reference, such as registry.example.org/group/model:{name}, to which htcd pushes
	// what a job has left, once it has been brought back. {namespace}, {name}, {attempt} and {proc} are replaced.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/([a-z0-9._/-]|[{](namespace|name|attempt|proc)[}])+:([A-Za-z0-9_.-]|[{](namespace|name|attempt|proc)[}]){1,128}$')",message="the artifact must name a registry and a tag, such as registry.example.org/group/model:{name}, with {namespace}, {name}, {attempt} and {proc}, and without a digest"
	Artifact string `json:"artifact,omitempty"`
}
