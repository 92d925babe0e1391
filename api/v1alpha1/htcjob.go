package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HTCJob is a script that runs in a container on an HTCondor pool, once or as
// a numbered set. Its status follows the jobs in HTCondor.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=htcjobs,singular=htcjob,shortName=htcj,categories=all,scope=Namespaced
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`,description="Where the job stands."
// +kubebuilder:printcolumn:name=Active,type=integer,JSONPath=`.status.active`,description="How many of its jobs have not ended."
// +kubebuilder:printcolumn:name=Succeeded,type=integer,JSONPath=`.status.succeeded`,description="How many have succeeded: return code 0, or one of successExitCodes."
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.failed`,description="How many ended otherwise."
// +kubebuilder:printcolumn:name=JobID,type=string,JSONPath=`.status.jobid[0]`,description="Id of the first job in HTCondor: cluster.proc."
// +kubebuilder:printcolumn:name=Pool,type=string,priority=1,JSONPath=`.status.effective.pool`,description="The HTCPool that the jobs were sent by."
// +kubebuilder:printcolumn:name=Schedd,type=string,priority=1,JSONPath=`.status.schedd`,description="The schedd that holds the jobs."
// +kubebuilder:printcolumn:name=User,type=string,priority=1,JSONPath=`.status.user`,description="The account of the jobs in HTCondor."
// +kubebuilder:printcolumn:name=Running,type=integer,priority=1,JSONPath=`.status.running`,description="How many run."
// +kubebuilder:printcolumn:name=Held,type=integer,priority=1,JSONPath=`.status.held`,description="How many are on hold in HTCondor."
// +kubebuilder:printcolumn:name=Started,type=date,priority=1,JSONPath=`.status.startedAt`,description="How long ago the first of its jobs started to run."
// +kubebuilder:printcolumn:name=Time,type=string,priority=1,JSONPath=`.status.duration`,description="How long the jobs ran, from the first start to the last end; empty until they have ended."
// +kubebuilder:printcolumn:name=Checked,type=date,priority=1,JSONPath=`.status.lastChecked`,description="How long ago the status was last known to be true."
// +kubebuilder:printcolumn:name=Reason,type=string,priority=1,JSONPath=`.status.reason`,description="Why it does not get on, or has failed."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="How long ago the object was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.?active.orValue(0) == 0 || self.spec == oldSelf.spec || self.spec.script == oldSelf.spec.script && [self.spec.?name] == [oldSelf.spec.?name] && [self.spec.?queue] == [oldSelf.spec.?queue] && [self.spec.?items] == [oldSelf.spec.?items] && [self.spec.?itemsFrom] == [oldSelf.spec.?itemsFrom] && [self.spec.?parameters] == [oldSelf.spec.?parameters] && [self.spec.?htcopts] == [oldSelf.spec.?htcopts] && [self.spec.?environment] == [oldSelf.spec.?environment] && [self.spec.?inputs] == [oldSelf.spec.?inputs] && [self.spec.?credentials] == [oldSelf.spec.?credentials] && [self.spec.?outputs] == [oldSelf.spec.?outputs] && [self.spec.?resources] == [oldSelf.spec.?resources] && [self.spec.?accountingGroup] == [oldSelf.spec.?accountingGroup] && [self.spec.?requirements] == [oldSelf.spec.?requirements] && [self.spec.?retries] == [oldSelf.spec.?retries] && [self.spec.?successExitCodes] == [oldSelf.spec.?successExitCodes] && [self.spec.?memoryRetry] == [oldSelf.spec.?memoryRetry] && [self.spec.?heldDeadlineSeconds] == [oldSelf.spec.?heldDeadlineSeconds] && [self.spec.?idleDeadlineSeconds] == [oldSelf.spec.?idleDeadlineSeconds] && [self.spec.?runDeadlineSeconds] == [oldSelf.spec.?runDeadlineSeconds] && [self.spec.?priority] == [oldSelf.spec.?priority] && [self.spec.?interactive] == [oldSelf.spec.?interactive] && [self.spec.?keepOnFailure] == [oldSelf.spec.?keepOnFailure] && [self.spec.?successPolicy] == [oldSelf.spec.?successPolicy] && [self.spec.?checkpoint] == [oldSelf.spec.?checkpoint] && [self.spec.?nodes] == [oldSelf.spec.?nodes] && [self.spec.?pool] == [oldSelf.spec.?pool]",fieldPath=".spec",reason=FieldValueForbidden,message="the spec cannot change while jobs are active in HTCondor: wait until they end, set spec.suspend to true, or delete this HTCJob (which removes them) and apply it again; only suspend, parallelism, ttlSecondsAfterFinished, activeDeadlineSeconds, maxFailures, onMaxFailures, logsPod, ports, result, completeAfterOutput and landing may change at any time"
type HTCJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to run.
	// +required
	Spec HTCJobSpec `json:"spec"`

	// Status says what has become of it in HTCondor. With the default the counts
	// can be read before htcd has seen the object, and observedGeneration shows
	// that it has not.
	// +optional
	// +kubebuilder:default={active: 0, succeeded: 0, failed: 0, phase: Pending, reason: NoStatus, observedGeneration: 0}
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

// HTCJobSpec says what to run. Changing it once the jobs have ended starts a new attempt; changing it while they run is
// refused. Exempt from both are the fields that Sent leaves out.
//
// +kubebuilder:validation:XValidation:rule="has(self.script.image) || has(self.pool) && has(self.pool.name)",fieldPath=".script.image",reason=FieldValueRequired,message="name the image of the container, such as centos; it may be left out beside pool.name, where that HTCPool has a default"
// +kubebuilder:validation:XValidation:rule="!has(self.queue) || !has(self.script.queue) || self.queue == self.script.queue",fieldPath=".queue",message="spec.queue and spec.script.queue differ: write the number once, in spec.script.queue"
// +kubebuilder:validation:XValidation:rule="[has(self.queue) || has(self.script.queue), has(self.items), has(self.itemsFrom), has(self.parameters)].filter(x, x).size() <= 1",message="queue, items, itemsFrom and parameters each say how many jobs there are: keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.outputs) || self.outputs.all(o, !has(o.artifact) || o.artifact.contains('{proc}')) || (has(self.queue) ? self.queue : 1) <= 1 && (has(self.script.queue) ? self.script.queue : 1) <= 1 && (has(self.items) ? self.items.size() : 1) <= 1 && (!has(self.parameters) || self.parameters.all(k, self.parameters[k].size() <= 1))",fieldPath=".outputs",message="with several jobs the artifact of an output needs {proc}: each would replace the files of the others"
// +kubebuilder:validation:XValidation:rule="!has(self.memoryRetry) || !has(self.resources) || !has(self.resources.memory) || string(self.memoryRetry.maxMemory).matches('[eE][+-]?[0-9]{3}') || string(self.resources.memory).matches('[eE][+-]?[0-9]{3}') || !isQuantity(string(self.memoryRetry.maxMemory)) || !isQuantity(string(self.resources.memory)) || quantity(string(self.memoryRetry.maxMemory)).isGreaterThan(quantity(string(self.resources.memory)))",fieldPath=".memoryRetry",message="memoryRetry.maxMemory must be more than resources.memory, which is asked for first"
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || !(has(self.parallelism) || has(self.checkpoint) || has(self.itemsFrom) || has(self.parameters) || has(self.keepOnFailure) || has(self.interactive) && self.interactive)",fieldPath=".nodes",message="nodes makes one job of several machines, which parallelism, checkpoint, itemsFrom, parameters, keepOnFailure and interactive do not go with: leave them out"
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || !(has(self.script.before) || has(self.script.after))",fieldPath=".script",message="script.before and script.after are for jobs of one machine: with nodes, write into script.source what is to run before and after"
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || (has(self.queue) ? self.queue : 1) <= 1 && (has(self.script.queue) ? self.script.queue : 1) <= 1 && (has(self.items) ? self.items.size() : 1) <= 1",fieldPath=".nodes",message="nodes makes one job of several machines: with queue or items above 1, HTCondor would make a single job of them all; make several HTCJobs"
// +kubebuilder:validation:XValidation:rule="!has(self.script.executable) || self.script.executable.startsWith('/') || has(self.script.before) || has(self.inputs) && self.inputs.exists(i, i.name == self.script.executable || has(i.unpack) || has(i.artifact))",fieldPath=".script.executable",message="the job has no such file: add it to spec.inputs, under this name, or name a program of the image by its absolute path"
// +kubebuilder:validation:XValidation:rule="[self.?managedBy] == [oldSelf.?managedBy]",fieldPath=".managedBy",message="managedBy cannot change: make another HTCJob"
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
	// +kubebuilder:validation:Maximum=1000000
	Queue *int32 `json:"queue,omitempty"`

	// Items has one element for each job, with variables of its script: it
	// replaces queue. An item's variable overrides that of environment.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.size() <= 1000 && self.map(i, size(i)).sum() <= 2000 && self.map(i, i.map(k, size(k) + size(i[k]) + 2).sum()).sum() <= 65536",optionalOldSelf=true,message="items must be at most 1,000, and 2,000 variables and 64 KiB together: put them into a ConfigMap and name it in itemsFrom, which takes 1,000,000"
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.size() > 1000 || self.map(i, size(i)).sum() > 2000 || self.all(i, i.all(k, size(k) <= 128 && k.matches('^[A-Za-z_][A-Za-z0-9_]*$')))",optionalOldSelf=true,message="a variable's name must be letters, digits and _, at most 128, and not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.size() > 1000 || self.map(i, size(i)).sum() > 2000 || self.all(i, i.all(k, !k.matches('^(HTCPROCID|HOME|E?UID|GID|PROMPT_COMMAND|(PRE|AP)PEND_PATH)$|^(_CONDOR_|APPTAINER|SINGULARITY)')))",optionalOldSelf=true,message="HTCPROCID, HOME, UID, EUID, GID, PROMPT_COMMAND, PREPEND_PATH, APPEND_PATH and names that begin with _CONDOR_, APPTAINER or SINGULARITY are set by htcd, HTCondor or apptainer: choose another name, or set them in the script"
	Items []Item `json:"items,omitempty"`

	// ItemsFrom takes the items from a table, which is read when the attempt begins.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.step)",fieldPath=".step",message="only the jobs of forEach can be those of a table that a step writes: name a ConfigMap or an HTCJob"
	ItemsFrom *ItemsFrom `json:"itemsFrom,omitempty"`

	// Parameters makes one job of each combination of its variables' values, in the
	// order of the names, the last one's values changing fastest: it replaces queue.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=10
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && k.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",message="a variable's name must be letters, digits and _, at most 128, and not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(HTCPROCID|HOME|UID|EUID|GID|PROMPT_COMMAND|PREPEND_PATH|APPEND_PATH|(_CONDOR_|APPTAINER|SINGULARITY).*)$'))",message="HTCPROCID, HOME, UID, EUID, GID, PROMPT_COMMAND, PREPEND_PATH, APPEND_PATH and names that begin with _CONDOR_, APPTAINER or SINGULARITY are set by htcd, HTCondor or apptainer: choose another name, or set them in the script"
	// +kubebuilder:validation:XValidation:rule="[self.map(k, double(self[k].size()))].all(l, (l.size() > 0 ? l[0] : 1.0) * (l.size() > 1 ? l[1] : 1.0) * (l.size() > 2 ? l[2] : 1.0) * (l.size() > 3 ? l[3] : 1.0) * (l.size() > 4 ? l[4] : 1.0) * (l.size() > 5 ? l[5] : 1.0) * (l.size() > 6 ? l[6] : 1.0) * (l.size() > 7 ? l[7] : 1.0) * (l.size() > 8 ? l[8] : 1.0) * (l.size() > 9 ? l[9] : 1.0) <= 1000000.0)",message="parameters must make at most 1000000 combinations: make it several HTCJobs"
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.map(k, self[k].size()).sum() <= 3000 && self.map(k, self[k].map(v, size(v) + 1).sum()).sum() <= 65536",optionalOldSelf=true,message="the values of parameters must be at most 3,000, and 64 KiB, together: make it several HTCJobs, or put the combinations into a ConfigMap and name it in itemsFrom"
	Parameters map[string]Parameter `json:"parameters,omitempty"`

	// HTCOpts holds more submit commands, one per line, as in a submit file:
	// `+JobFlavour = "espresso"`, `request_memory = 2GB`.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 65536",message="htcopts must be at most 64 KiB of UTF-8"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x08\\\\x0b-\\\\x1f\\\\x7f]')",message="htcopts must not hold control characters other than tab and newline: save it with plain (Unix) line ends"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)(?:^|\\\\n)[ \\\\t]*queue(?:[ \\\\t\\\\n(]|$)')",message="htcopts must not hold a queue statement: write how many jobs you want in spec.script.queue"
	HTCOpts string `json:"htcopts,omitempty"`

	// Environment holds variables of the script. They are no place for secrets:
	// whoever may read this HTCJob reads them.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && k.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",message="a variable's name must be letters, digits and _, at most 128, and not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(HTCPROCID|HOME|UID|EUID|GID|PROMPT_COMMAND|PREPEND_PATH|APPEND_PATH|(_CONDOR_|APPTAINER|SINGULARITY).*)$'))",message="HTCPROCID, HOME, UID, EUID, GID, PROMPT_COMMAND, PREPEND_PATH, APPEND_PATH and names that begin with _CONDOR_, APPTAINER or SINGULARITY are set by htcd, HTCondor or apptainer: choose another name, or set them in the script"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !self[k].matches('[\\\\x00-\\\\x1f\\\\x7f]'))",message="a variable's value must be one line without control characters"
	Environment map[string]EnvironmentValue `json:"environment,omitempty"`

	// Inputs are files that htcd reads once for each attempt and sends with it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Inputs []Input `json:"inputs,omitempty"`

	// Outputs are the files and directories that are brought back. Everything else that
	// the script leaves is dropped, except its standard output and error. When absent, all files in the
	// script's directory are brought back, but no directories.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.all(o, !has(o.artifact) || self.exists_one(p, has(p.artifact) && p.artifact == o.artifact))",message="two outputs have the same artifact: the second would replace the first"
	Outputs []Output `json:"outputs,omitempty"`

	Handling `json:",inline"`

	// Credentials are files from Secrets, such as a proxy or a token, that stay up
	// to date while the jobs wait and run.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.filter(c, c.as == 'X509Proxy').size() <= 1 && self.filter(c, c.as == 'BearerToken').size() <= 1",message="at most one credential can be the X509Proxy and one the BearerToken: use File for the others"
	Credentials []Credential `json:"credentials,omitempty"`

	// Resources is what each job asks for; what is absent is left to the pool.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.cpus) || !string(self.cpus).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.cpus)) && quantity(string(self.cpus)).isGreaterThan(quantity('0')) && quantity(string(self.cpus)).compareTo(quantity('1M')) <= 0",fieldPath=".cpus",message="the cpus must be more than 0 and at most 1M, written as 4, or as 500m, which is rounded up to 1"
	// +kubebuilder:validation:XValidation:rule="!has(self.memory) || !string(self.memory).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.memory)) && quantity(string(self.memory)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.memory)).compareTo(quantity('1Pi')) <= 0",fieldPath=".memory",message="the memory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	// +kubebuilder:validation:XValidation:rule="!has(self.disk) || !string(self.disk).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.disk)) && quantity(string(self.disk)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.disk)).compareTo(quantity('1Pi')) <= 0",fieldPath=".disk",message="the disk must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	// +kubebuilder:validation:XValidation:rule="!has(self.gpus) || !string(self.gpus).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.gpus)) && quantity(string(self.gpus)).isInteger() && quantity(string(self.gpus)).compareTo(quantity('0')) >= 0 && quantity(string(self.gpus)).compareTo(quantity('1M')) <= 0",fieldPath=".gpus",message="the gpus must be a whole number, at least 0 and at most 1M"
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

	// Retries is how often HTCondor runs a job again that failed by its return code.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Retries *int32 `json:"retries,omitempty"`

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
	// +kubebuilder:validation:XValidation:rule="!string(self.maxMemory).matches('[eE][+-]?[0-9]{3}') && isQuantity(string(self.maxMemory)) && quantity(string(self.maxMemory)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self.maxMemory)).compareTo(quantity('1Pi')) <= 0",fieldPath=".maxMemory",message="maxMemory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB; a number without a unit is in bytes: for 3000 MiB write 3000Mi"
	MemoryRetry *MemoryRetry `json:"memoryRetry,omitempty"`

	Execution `json:",inline"`

	// Suspend, while true, keeps the jobs out of HTCondor: none is sent, and those
	// that were sent are removed. Set back to false, those that have not
	// ended are sent, as a new attempt if some had been sent before.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// TTLSecondsAfterFinished is how long the HTCJob is kept after its end,
	// with its output; without it, until somebody deletes it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// ActiveDeadlineSeconds is how long an attempt may take from its submission
	// to its end. Its jobs are then removed, and it has failed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	Deadlines `json:",inline"`

	EarlyEnd `json:",inline"`

	// LogsPod leaves a Pod of the HTCJob's name when it has ended, whose log is the jobs' output.
	// +optional
	LogsPod bool `json:"logsPod,omitempty"`

	// Ports of the jobs are reached by a Service of the HTCJob's name, until it has ended. The namespace needs
	// deploy/components/ports; without it the field means nothing.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MaxItems=8
	Ports []JobPort `json:"ports,omitempty"`

	Handover `json:",inline"`

	// Priority orders the jobs of one account in HTCondor, and the HTCJobs of a namespace that wait to be sent: higher
	// numbers first, 0 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority *int32 `json:"priority,omitempty"`

	// Interactive, while true, has each job's container wait for people instead of running the script, until
	// activeDeadlineSeconds have passed, an hour when absent. It has failed then, reason Interactive. It has succeeded
	// when somebody has ended the wait before, as by htcd exec NAME -- pkill sleep.
	// +optional
	Interactive bool `json:"interactive,omitempty"`

	// KeepOnFailure is how long the container of a job stays for a look when its script has failed, such as 10m. The
	// job counts as running until then. The image must have sh and sleep.
	// +optional
	KeepOnFailure *KeepTime `json:"keepOnFailure,omitempty"`

	// Pool says where to send the jobs, where htcd's administrator allows a choice.
	// +optional
	Pool *Pool `json:"pool,omitempty"`

	Runner `json:",inline"`
}

// KeepTime is a time such as 90s, 30m or 1h30m, at most a day.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^([0-9]{1,2}h)?([0-9]{1,4}m)?([0-9]{1,5}s)?$`
// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="it must be at least 1s and at most 24h"
type KeepTime string

// EnvironmentValue is the value of one variable.
//
// +kubebuilder:validation:MaxLength=4096
type EnvironmentValue string

// Resources is what each job asks for, in Kubernetes' quantities. An exponent has two digits at most: to compare
// 1e50000000 takes minutes.
type Resources struct {
	// CPUs is rounded up to whole cores.
	// +optional
	CPUs *resource.Quantity `json:"cpus,omitempty"`

	// Memory is rounded up to whole MiB.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Disk is rounded up to whole KiB.
	// +optional
	Disk *resource.Quantity `json:"disk,omitempty"`

	// GPUs is a whole number.
	// +optional
	GPUs *resource.Quantity `json:"gpus,omitempty"`
}

// MemoryRetry bounds how much more memory a job gets that ran out of it.
type MemoryRetry struct {
	// MaxMemory is the most that is asked for; each time the request doubles until then.
	// +required
	MaxMemory resource.Quantity `json:"maxMemory"`

	// MaxRetries is how often it is tried again, 3 times when absent.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	MaxRetries int32 `json:"maxRetries,omitempty"`
}

// Pool is a place that jobs are sent to.
type Pool struct {
	// Name names the HTCPool whose defaults and limits hold; the one that is the default when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="the pool's name must be a Kubernetes name"
	Name string `json:"name,omitempty"`

	// Collector is the pool's central manager, host or host:port; htcd's own when absent. With it, schedd is needed,
	// too.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$')",message="the collector must be host or host:port"
	Collector string `json:"collector,omitempty"`

	// Schedd is the name of the schedd; the usual one when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_]([A-Za-z0-9_.@-]*[A-Za-z0-9])?$')",message="the schedd must be a name such as bigbird10.cern.ch or name@host"
	Schedd string `json:"schedd,omitempty"`

	// SecretName names the Secret of this HTCJob's namespace whose account the
	// jobs are sent as; the usual one when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="the Secret's name must be a Kubernetes name"
	SecretName string `json:"secretName,omitempty"`
}

// Script is what every job runs: `command SCRIPTFILE NUMBER`, in a container
// of the image.
type Script struct {
	Program `json:",inline"`

	// Queue says how many jobs to run, 1 when absent. Each gets its number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Queue *int32 `json:"queue,omitempty"`
}

// Program is a script with the command that runs it, or an executable, and the container for it.
//
// +kubebuilder:validation:XValidation:rule="has(self.command) || has(self.executable)",fieldPath=".command",reason=FieldValueRequired,message="write what runs script.source, such as bash or python3; for a program of your own use script.executable instead of both"
// +kubebuilder:validation:XValidation:rule="has(self.source) || has(self.executable)",fieldPath=".source",reason=FieldValueRequired,message="write the text of the script; for a program of your own use script.executable instead of command and source"
// +kubebuilder:validation:XValidation:rule="!has(self.executable) || !has(self.command) && !has(self.source)",fieldPath=".executable",message="script.executable replaces script.command and script.source: keep it, or these two"
// +kubebuilder:validation:XValidation:rule="!has(self.executable) || (!has(self.before) || has(self.before.command)) && (!has(self.after) || has(self.after.command))",fieldPath=".executable",message="with script.executable, script.before and script.after need a command of their own, such as sh"
type Program struct {
	// Image is a docker reference (`centos`, `registry/name:tag`), the same with
	// a scheme (docker://, oras://, library://), or an absolute path on the
	// execute nodes: a .sif file or an unpacked image, on CVMFS for example.
	// With pool.name it may be absent: it is the default of that HTCPool then.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9/][A-Za-z0-9/._:@%+=~-]*$')",message="the image must be a docker reference such as centos or python:3.13, one that begins with docker://, oras:// or library://, or an absolute path such as /cvmfs/unpacked.cern.ch/NAME; spaces, quotes and control characters have no place in it"
	// +kubebuilder:validation:XValidation:rule="!self.contains('://') || self.matches('^(?:docker|oras|library)://[A-Za-z0-9]')",message="the image's scheme must be docker://, oras:// or library://, with a name after it; leave the scheme out for an ordinary docker image"
	Image string `json:"image,omitempty"`

	// Command runs in the container, with the script's path as its first
	// argument and the job's number, from 0, as its second: bash,
	// python3, Rscript. It is split into words at white space; no shell looks at
	// it, and quotes are refused.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="the command must be one line without control characters: put more lines into script.source"
	// +kubebuilder:validation:XValidation:rule="self.matches('[^ ]')",message="the command must not be blank: write what runs the script, such as bash or python3"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x22\\\\x27]')",message="the command must not hold quotes: it is split into words at white space, and no shell looks at it; write what needs quotes into script.source"
	Command string `json:"command,omitempty"`

	// Source is the text of the script, at most 256 KiB: every job spools its
	// own copy, so larger inputs belong on a shared file system.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 262144",message="the script must be at most 256 KiB of UTF-8: put larger inputs on a shared file system and read them from there"
	// +kubebuilder:validation:XValidation:rule="!self.contains('\\u0000')",message="the script must not hold NUL characters: encode binary data, as base64 for example"
	// +kubebuilder:validation:XValidation:rule="self.trim() != ''",message="the script must not be blank: write at least one command"
	Source string `json:"source,omitempty"`

	// Executable is a program to run instead of command and source: the name of a file of the job, such as one of its
	// inputs, which is made executable, or an absolute path in the image. Its arguments are args alone. The image needs
	// no shell.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/?[A-Za-z0-9_][A-Za-z0-9_.+=@%~-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@%~-]*)*$')",message="the executable must be the name of an input, such as simulate or tools/simulate, or an absolute path in the image, of letters, digits and _ . + = @ % ~ -; arguments belong into script.args"
	Executable string `json:"executable,omitempty"`

	// Args are the arguments of the script, instead of the job's number, or of the executable. No shell looks at them.
	// {{item.NAME}} stands for a variable of the job's item, {{proc}} for its number, {{cluster}} for its cluster's in
	// HTCondor and {{node}} for the number of the node, of several. All together are at most 64 KiB.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=65536
	// +kubebuilder:validation:items:Pattern=`^[^\x00]*$`
	Args []string `json:"args,omitempty"`

	// Workdir is a directory of the container, such as /opt/model, in which the script starts. Inputs are, and outputs
	// are expected, in the script's own directory all the same; that is where it starts when absent, and the variable
	// outpath has its path beside workdir.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[A-Za-z0-9._/@+=~-]+$')",message="workdir must be the absolute path of a directory in the image, of letters, digits and . _ / @ + = ~ -, such as /opt/model"
	Workdir string `json:"workdir,omitempty"`

	// WritableRoot, while true, lets the script change the files of its image, where the site allows that. What it
	// changes is kept in the memory of the node (some 64 MiB, unless the node says otherwise), is seen by this job
	// alone, and is gone when its script ends.
	// +optional
	WritableRoot bool `json:"writableRoot,omitempty"`

	// Before runs before the script, in a container of its own of the same image and with the same files. If it fails,
	// the script does not run, and the job has failed with its return code. When the job goes on from a checkpoint
	// where it was, it does not run again; on another machine, or for another try, it does.
	// +optional
	Before *ScriptPart `json:"before,omitempty"`

	// After runs when the script has ended by itself, however, in a container of its own of the same image and with the
	// same files. The variable RETURN has the return code of the script; its own is that of the job. After a checkpoint
	// it does not run.
	// +optional
	After *ScriptPart `json:"after,omitempty"`
}

// ScriptPart is a script that belongs to another one, and runs on the same machine.
type ScriptPart struct {
	// Command runs it, as the script's command runs the script; that one when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="the command must be one line without control characters: put more lines into source"
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('[^ ]')",message="the command must not be blank: leave it out for that of the script"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x22\\\\x27]')",message="the command must not hold quotes: it is split into words at white space, and no shell looks at it; write what needs quotes into source"
	Command string `json:"command,omitempty"`

	// Source is its text, at most 64 KiB.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="!self.contains('\\u0000')",message="source must not hold NUL characters: encode binary data, as base64 for example"
	// +kubebuilder:validation:XValidation:rule="self.trim() != ''",message="source must not be blank: write at least one command"
	Source string `json:"source"`

	// Args are its arguments, as those of the script; the job's number when absent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=65536
	// +kubebuilder:validation:items:Pattern=`^[^\x00]*$`
	Args []string `json:"args,omitempty"`
}
