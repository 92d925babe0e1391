package v1alpha1

import "k8s.io/apimachinery/pkg/util/intstr"

// StepName is what a step is called. Its output lies in a directory of that name.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`
type StepName string

// Step is what each sequence runs at one point, or one job for all of them.
type Step struct {
	StepWork `json:",inline"`

	// Needs names the steps that must have succeeded before; when absent, the one before it in the list. An empty list
	// means that it needs none. {step: NAME, by: [VARIABLE]} in place of a name lets each job of this step need only
	// those jobs of that one whose items have the same values of these variables, or with by: [HTCPROCID] the one of
	// the same number. With outcome: Any the jobs of that step must only have ended, whether they have succeeded or
	// failed, or can no longer run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Needs []Need `json:"needs,omitzero"`

	// Pairing is ByIndex, when absent: the step runs in each sequence, and needs the steps of that sequence; or All: it
	// runs once, for all sequences that have succeeded so far, when all have ended.
	// +optional
	Pairing Pairing `json:"pairing,omitempty"`

	// ForEach makes several jobs of the step, in each sequence, that run side by side.
	// +optional
	ForEach *ForEach `json:"forEach,omitempty"`

	// MaxFailures is how many of the step's jobs in a sequence, or of its nodes in spec.graph, may fail: the step
	// counts as succeeded all the same, and what needs it runs. It is a number, or a part of them such as 5%, rounded
	// up; 0 when absent. It needs forEach, or spec.graph.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100000 : string(self).matches('^([1-9][0-9]?|100)%$')",message="maxFailures must be a number of jobs from 1 to 100000, such as 20, or a part of them from 1% to 100%, such as 5%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
}

// StepWork is the work of a step, wherever it stands in the graph.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retryExitCodes) || has(self.retries)",fieldPath=".retryExitCodes",message="retryExitCodes are for retries: say how many there may be"
// +kubebuilder:validation:XValidation:rule="!has(self.retryExitCodes) || !has(self.job.successExitCodes) || !self.retryExitCodes.exists(c, c in self.job.successExitCodes)",fieldPath=".retryExitCodes",message="a return code is in retryExitCodes and in job.successExitCodes: a job that has succeeded is not tried again"
// +kubebuilder:validation:XValidation:rule="!has(self.job.script.executable) || self.job.script.executable.startsWith('/') || has(self.job.script.before) || has(self.pull) || has(self.job.inputs) && self.job.inputs.exists(i, i.name == self.job.script.executable || has(i.unpack) || has(i.artifact))",fieldPath=".job.script.executable",message="the step's jobs have no such file: add it to the step's inputs, under this name, pull it from another step, or name a program of the image by its absolute path"
// +kubebuilder:validation:XValidation:rule="!has(self.abortReturn) || has(self.abortExitCodes)",fieldPath=".abortReturn",message="abortReturn says how the workflow ends that a job has ended: say in abortExitCodes with which return codes one does"
type StepWork struct {
	// Name is what the step is called; no other may have the same name.
	// +required
	Name StepName `json:"name"`

	// Job is what to run.
	// +required
	Job StepJob `json:"job"`

	// Pull names files of steps before it, which are in the script's directory before the script starts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Pull []Pull `json:"pull,omitempty"`

	// Push publishes what each job that has succeeded brought back, as an OCI artifact, once htcd has it.
	// +optional
	Push *Push `json:"push,omitempty"`

	// Retries is how often HTCondor runs a job again that failed by its return code.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Retries *int32 `json:"retries,omitempty"`

	// RetryExitCodes are the return codes that are worth another try; all that are failures when absent.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	RetryExitCodes []int32 `json:"retryExitCodes,omitempty"`

	// AbortExitCodes are the return codes with which a job of the step ends everything, as failurePolicy Abort does at
	// every failure. It is not tried again with them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	AbortExitCodes []int32 `json:"abortExitCodes,omitempty"`

	// AbortReturn is what the workflow ends with when a job of the step has ended everything by abortExitCodes: 0: it
	// has succeeded, if finally has; another number: it has failed, with that as its exitCode. When absent it has
	// failed as by failurePolicy Abort.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	AbortReturn *int32 `json:"abortReturn,omitempty"`

	// Priority orders the jobs of one account in HTCondor: higher numbers first, 0 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority *int32 `json:"priority,omitempty"`
}

// Pairing says whether a step runs in each sequence or once for all.
//
// +kubebuilder:validation:Enum=ByIndex;All
type Pairing string

// The pairings.
const (
	PairByIndex Pairing = "ByIndex" // in each sequence
	PairAll     Pairing = "All"     // once
)

// ForEach says which jobs a step has side by side: so many, or one for each item. The apiserver would refuse rules
// about the items of so many steps as too expensive: htcd itself refuses what no item may be.
//
// +kubebuilder:validation:XValidation:rule="[has(self.count), has(self.items), has(self.itemsFrom)].filter(x, x).size() == 1",message="count, items and itemsFrom each say which jobs the step has: write one of them"
type ForEach struct {
	// Count is how many: each gets its number, from 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Count int32 `json:"count,omitempty"`

	// Items has one element for each job, with variables of its script. They override those of its sequence and of
	// environment.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Items []Item `json:"items,omitempty"`

	// ItemsFrom takes the items from a table of at most 100,000 rows, which is read when the attempt begins, or when a
	// step before this one has written it.
	// +optional
	ItemsFrom *ItemsFrom `json:"itemsFrom,omitempty"`
}

// Push says where a step's files are published: what a job brought back, without its standard output and error, becomes
// the artifact ARTIFACT/JOBID:TAG; JOBID is the name of its sequence, or "all".
type Push struct {
	// Artifact is a registry that htcd's administrator allows, and perhaps a path there, such as
	// registry.example.org/group/scan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*$`
	Artifact string `json:"artifact"`

	// Tag is that of the artifacts, when absent the name of the step. With forEach, -NUMBER is added.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	Tag string `json:"tag,omitempty"`
}

// Pull is a file or a directory of a step before, or of an artifact. Where that step has one job, for this one's
// sequence, it lies at the same path. Otherwise there is one for each of its jobs, at JOBID/PATH, or JOBID/NUMBER/PATH
// with forEach; JOBID is "all" for a step with pairing All.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.artifact)",message="a pull is from a step or from an artifact: name one of them"
// +kubebuilder:validation:XValidation:rule="has(self.artifact) == has(self.tag)",fieldPath=".tag",message="artifact and tag belong together"
type Pull struct {
	// From is the step before.
	// +optional
	From StepName `json:"from,omitempty"`

	// Artifact takes the files from an OCI registry instead, such as registry.example.org/group/scan: from the artifact
	// ARTIFACT/JOBID:TAG, as Push makes it, with the JOBID of the job that pulls. htcd fetches it before it sends the
	// step.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*$`
	Artifact string `json:"artifact,omitempty"`

	// Tag is that of the artifact.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	Tag string `json:"tag,omitempty"`

	// Path is that of a file or a directory in the script's directory there, or in the artifact. A pattern
	// with * ? [ ] stands for everything that it matches, at least one: result/*.root.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_*?\\\\x5b][A-Za-z0-9_.+=@%~:*?\\\\x5b\\\\x5d!-]*(/[A-Za-z0-9_*?\\\\x5b][A-Za-z0-9_.+=@%~:*?\\\\x5b\\\\x5d!-]*)*$')",message="the path must be relative to the script's directory, of letters, digits and _ . + = @ % ~ : - with * ? [ ] for others; no part of it may begin with a dot, and it must not end in /"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(script|token|htcd-send|job[.]sh|job[.]sub|condor_exec[.]exe|tmp|var|_condor[^/]*)(/|$)')",message="script, token, htcd-send, job.sh, job.sub, condor_exec.exe, tmp, var and what begins with _condor are htcd's and HTCondor's: let the script leave a file of another name"
	Path string `json:"path"`
}

// StepJob is what each job of a step runs, as an HTCJob says it. The apiserver would refuse rules about quantities here
// as too expensive for so many steps: htcd itself refuses what is too much or too little.
//
// +kubebuilder:validation:XValidation:rule="!has(self.activeDeadlineSeconds) || has(self.interactive) && self.interactive",message="activeDeadlineSeconds of a step is for interactive ones: it is how long their container waits"
type StepJob struct {
	// Script is what every job runs.
	// +required
	Script Program `json:"script"`

	// HTCOpts holds more submit commands, one per line, as in a submit file:
	// `+JobFlavour = "espresso"`, `request_memory = 2GB`.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 65536",message="htcopts must be at most 64 KiB of UTF-8"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x08\\\\x0b-\\\\x1f\\\\x7f]')",message="htcopts must not hold control characters other than tab and newline: save it with plain (Unix) line ends"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?im)^[ \\\\t]*queue([ \\\\t(]|$)')",message="htcopts must not hold a queue statement: write how many jobs you want in forEach or spec.sequences"
	HTCOpts string `json:"htcopts,omitempty"`

	// Environment holds variables of the script. They are no place for secrets:
	// whoever may read this HTCWorkflow reads them.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && k.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",message="a variable's name must be letters, digits and _, at most 128, and not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(HTCPROCID|jobid|outpath|registry|pull_tag|push_tag|HOME|UID|EUID|GID|PROMPT_COMMAND|PREPEND_PATH|APPEND_PATH|(_CONDOR_|APPTAINER|SINGULARITY).*)$'))",message="HTCPROCID, jobid, outpath, registry, pull_tag, push_tag, HOME, UID, EUID, GID, PROMPT_COMMAND, PREPEND_PATH, APPEND_PATH and names that begin with _CONDOR_, APPTAINER or SINGULARITY are set by htcd, HTCondor or apptainer: choose another name, or set them in the script"
	Environment map[string]ItemValue `json:"environment,omitempty"`

	// Outputs are the files and directories that are brought back. Everything else that the script leaves is dropped,
	// except its standard output and error, and what other steps pull. When absent, all files in the script's directory
	// are brought back, but no directories.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=20
	Outputs []StepOutput `json:"outputs,omitempty"`

	Handling `json:",inline"`

	// Inputs are files that are in the script's directory before it starts. Each is there once for all jobs of
	// the step. With jobRef.proc Same none can be brought: a workflow has no jobs that are numbered so.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Inputs []Input `json:"inputs,omitempty"`

	// Credentials are proxies, tokens and other files with secrets, which are kept fresh while the jobs wait and run.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Credentials []Credential `json:"credentials,omitempty"`

	// Resources is what each job asks for; what is absent is left to the pool.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.memory) || (type(self.memory) == int ? self.memory >= 1048576 : !['B', 'b', 'g', 't', 'K'].exists(unit, self.memory.endsWith(unit)))",fieldPath=".memory",message="the memory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	// +kubebuilder:validation:XValidation:rule="!has(self.disk) || (type(self.disk) == int ? self.disk >= 1048576 : !['B', 'b', 'g', 't', 'K'].exists(unit, self.disk.endsWith(unit)))",fieldPath=".disk",message="the disk must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	Resources *Resources `json:"resources,omitempty"`

	// AccountingGroup is the group that the use of the pool is counted for.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_@-]*([.][A-Za-z0-9_@-]+)*$')",message="the accounting group must be words of letters, digits and _ @ - with one dot between, such as group_u_CMS.u_zh"
	AccountingGroup string `json:"accountingGroup,omitempty"`

	// Requirements is a ClassAd expression that a machine must fulfil, such as
	// `OpSysMajorVer == 9 && HasSingularity`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Requirements string `json:"requirements,omitempty"`

	// SuccessExitCodes are the return codes that count as success; 0 alone when
	// absent. Written down, they replace 0.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=255
	SuccessExitCodes []int32 `json:"successExitCodes,omitempty"`

	// MemoryRetry lets a job that was put on hold for too little memory run again with more.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(type(self.maxMemory) == int ? self.maxMemory >= 1048576 : !['B', 'b', 'g', 't', 'K'].exists(unit, self.maxMemory.endsWith(unit)))",fieldPath=".maxMemory",message="maxMemory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	MemoryRetry *MemoryRetry `json:"memoryRetry,omitempty"`

	Execution `json:",inline"`

	// Interactive, while true, has each job's container wait for people instead of running the script. It has failed
	// when its time is over, reason Interactive. It has succeeded when somebody has ended the wait before, as by htcd
	// exec NAME --step STEP -- pkill sleep.
	// +optional
	Interactive bool `json:"interactive,omitempty"`

	// ActiveDeadlineSeconds is how long the container of an interactive step waits for people; activeDeadlineSeconds of
	// the HTCWorkflow when absent, or an hour.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// KeepOnFailure is how long the container of a job stays for a look when its script has failed, such as 10m. The
	// job counts as running until then. The image must have sh and sleep.
	// +optional
	KeepOnFailure *KeepTime `json:"keepOnFailure,omitempty"`

	Deadlines `json:",inline"`
}

// StepOutput is something that every job of a step is to leave in its script's directory. A job whose script succeeds
// without it has failed, reason OutputMissing.
type StepOutput struct {
	// Path is that of a file or a directory in the script's directory. A pattern
	// with * ? [ ] stands for everything that it matches, at least one: result/*.root.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_*?\\\\x5b][A-Za-z0-9_.+=@%~:*?\\\\x5b\\\\x5d!-]*(/[A-Za-z0-9_*?\\\\x5b][A-Za-z0-9_.+=@%~:*?\\\\x5b\\\\x5d!-]*)*$')",message="an output's path must be relative to the script's directory, of letters, digits and _ . + = @ % ~ : - with * ? [ ] for others; no part of it may begin with a dot, and it must not end in /"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(script|token|htcd-send|job[.]sh|job[.]sub|condor_exec[.]exe|tmp|var|_condor[^/]*)(/|$)')",message="an output must not be called script, token, htcd-send, job.sh, job.sub, condor_exec.exe, tmp or var, nor begin with _condor: htcd and HTCondor use these names; standard output and error are always brought back"
	Path string `json:"path"`

	// URL is where the execute node writes the file to, if the script succeeds, by a transfer plugin of HTCondor,
	// instead of bringing it back. {namespace}, {name}, {attempt}, {jobid} and {proc} are replaced: jobid is the name
	// of the sequence or of the node, proc the number within forEach. It is scheme://host/path, which htcd itself
	// checks.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	URL string `json:"url,omitempty"`
}
