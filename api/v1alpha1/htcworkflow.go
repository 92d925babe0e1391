package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HTCWorkflow is a graph of steps, which is run once or for many numbered sequences, as jobs that HTCondor's DAGMan
// sends on the schedd's host. Its status counts them by step.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=htcworkflows,singular=htcworkflow,shortName=htcw,categories=all,scope=Namespaced
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`,description="Where the workflow stands."
// +kubebuilder:printcolumn:name=Done,type=integer,JSONPath=`.status.nodes.done`,description="How many of its nodes have succeeded. A node is one job of a step."
// +kubebuilder:printcolumn:name=Total,type=integer,JSONPath=`.status.nodes.total`,description="How many nodes it has."
// +kubebuilder:printcolumn:name=Running,type=integer,JSONPath=`.status.nodes.running`,description="How many run."
// +kubebuilder:printcolumn:name=Idle,type=integer,JSONPath=`.status.nodes.idle`,description="How many wait in HTCondor for a slot."
// +kubebuilder:printcolumn:name=Held,type=integer,JSONPath=`.status.nodes.held`,description="How many are on hold in HTCondor."
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.nodes.failed`,description="How many have failed, their retries used up."
// +kubebuilder:printcolumn:name=Futile,type=integer,priority=1,JSONPath=`.status.nodes.futile`,description="How many never run because one before them failed."
// +kubebuilder:printcolumn:name=Sequences,type=integer,priority=1,JSONPath=`.status.sequences.total`,description="How many times the steps are run."
// +kubebuilder:printcolumn:name=Succeeded,type=integer,priority=1,JSONPath=`.status.sequences.succeeded`,description="How many sequences have succeeded."
// +kubebuilder:printcolumn:name=JobID,type=string,priority=1,JSONPath=`.status.jobid[-1:]`,description="Id in HTCondor of the DAGMan that was sent last."
// +kubebuilder:printcolumn:name=Schedd,type=string,priority=1,JSONPath=`.status.schedd`,description="The schedd that holds the jobs."
// +kubebuilder:printcolumn:name=Checked,type=date,priority=1,JSONPath=`.status.lastChecked`,description="How long ago the status was last known to be true."
// +kubebuilder:printcolumn:name=Reason,type=string,priority=1,JSONPath=`.status.reason`,description="Why it does not get on, or has failed."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="How long ago the object was created."
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.?phase.orValue('Pending') in ['Submitting', 'Idle', 'Running', 'Held']) || self.spec.steps == oldSelf.spec.steps && self.spec.steps.map(s, s.name) == oldSelf.spec.steps.map(s, s.name) && [self.spec.?sequences] == [oldSelf.spec.?sequences] && [self.spec.?graph] == [oldSelf.spec.?graph] && [self.spec.?finally] == [oldSelf.spec.?finally] && [self.spec.?failurePolicy] == [oldSelf.spec.?failurePolicy] && [self.spec.?interactive] == [oldSelf.spec.?interactive] && [self.spec.?alwaysSucceed] == [oldSelf.spec.?alwaysSucceed] && [self.spec.?throttle] == [oldSelf.spec.?throttle] && [self.spec.?rules] == [oldSelf.spec.?rules] && [self.spec.?pool] == [oldSelf.spec.?pool]",fieldPath=".spec",reason=FieldValueForbidden,message="the spec cannot change while jobs are active in HTCondor: wait until they end, set spec.suspend to true, or delete this HTCWorkflow (which removes them) and apply it again; only suspend, resume, keepArtifacts, ttlSecondsAfterFinished, activeDeadlineSeconds, ports, result and completeAfterOutput may change at any time"
type HTCWorkflow struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to run.
	// +required
	Spec HTCWorkflowSpec `json:"spec"`

	// Status says what has become of it in HTCondor. With the default the counts
	// can be read before htcd has seen the object, and observedGeneration shows
	// that it has not.
	// +optional
	// +kubebuilder:default={phase: Pending, reason: NoStatus, observedGeneration: 0, nodes: {total: 0, done: 0, running: 0, idle: 0, held: 0, failed: 0, futile: 0}, sequences: {total: 0, active: 0, succeeded: 0, failed: 0}}
	Status HTCWorkflowStatus `json:"status,omitempty"`
}

// HTCWorkflowList is what a list request answers.
//
// +kubebuilder:object:root=true
type HTCWorkflowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HTCWorkflow `json:"items"`
}

// HTCWorkflowSpec says what to run. Changing it once the jobs have ended starts a new attempt; changing it while they
// run is refused. Exempt from both are the fields that Sent leaves out.
//
// +kubebuilder:validation:XValidation:rule="has(self.pool) && has(self.pool.name) || self.steps.all(s, has(s.job.script.image)) && (!has(self.finally) || has(self.finally.job.script.image))",fieldPath=".steps",reason=FieldValueRequired,message="each step needs script.image, the image of its container, such as centos; it may be left out beside pool.name, where that HTCPool has a default"
// +kubebuilder:validation:XValidation:rule="!has(self.rules) || self.rules.all(r, r.action != 'Repeat' || !has(r.step) || !self.steps.exists(s, s.name == r.step && has(s.pairing) && s.pairing == 'All'))",fieldPath=".rules",message="Repeat is about a step that runs in each sequence, not once for all"
// +kubebuilder:validation:XValidation:rule="!has(self.rules) || self.rules.all(r, !has(r.step) || self.steps.exists(s, s.name == r.step))",fieldPath=".rules",message="a rule's step must be one of spec.steps"
// +kubebuilder:validation:XValidation:rule="!has(self.graph) || !has(self.sequences) && self.steps.all(s, !has(s.forEach) && !has(s.pairing))",fieldPath=".graph",message="graph says which jobs the steps have, and which come before which: leave out sequences, and forEach and pairing of the steps"
// +kubebuilder:validation:XValidation:rule="!has(self.sequences) || !has(self.sequences.completions) || !has(self.failurePolicy) || self.failurePolicy != 'Abort'",fieldPath=".failurePolicy",message="Abort ends everything at the first failure, and sequences.completions goes on after failures: keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.throttle) || !has(self.throttle.perStep) || self.steps.all(s, !has(s.job.parallelism) || !(s.name in self.throttle.perStep))",fieldPath=".throttle",message="throttle.perStep of a step and its job.parallelism say the same: keep one of them"
// +kubebuilder:validation:XValidation:rule="[self.?managedBy] == [oldSelf.?managedBy]",fieldPath=".managedBy",message="managedBy cannot change: make another HTCWorkflow"
type HTCWorkflowSpec struct {
	// Sequences says how many times the steps are run, side by side; once when absent.
	// +optional
	Sequences *Sequences `json:"sequences,omitempty"`

	// Steps are what every sequence runs.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Steps []Step `json:"steps"`

	// Graph lists the nodes of the steps one by one, and which come before which, for a graph that sequences, forEach
	// and needs cannot say. It replaces these three: each step runs once for each of its nodes.
	// +optional
	Graph *Graph `json:"graph,omitempty"`

	// Finally runs once when everything else has ended, however that ended; not if the workflow is deleted or
	// suspended. Its script has the variables HTC_OUTCOME (Succeeded or Failed), HTC_FAILED_COUNT, and HTC_FAILED with
	// the names of the first nodes that failed.
	// +optional
	Finally *StepWork `json:"finally,omitempty"`

	// FailurePolicy is Continue, when absent: a step that failed ends its own sequence, and the others go on; or Abort:
	// it ends all of them.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// Interactive, while true, has all jobs be interactive, as those of a step with job.interactive are: each comes
	// when it would have run, and what needs it comes when somebody has ended its wait.
	// +optional
	Interactive bool `json:"interactive,omitempty"`

	// AlwaysSucceed names steps whose failures count as success.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	AlwaysSucceed []StepName `json:"alwaysSucceed,omitempty"`

	// Throttle bounds how much of the workflow is in HTCondor at once.
	// +optional
	Throttle *Throttle `json:"throttle,omitempty"`

	// Rules change how the workflow goes on, by what its scripts have measured or by how many have succeeded or failed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Rules []Rule `json:"rules,omitempty"`

	// Resume says what a new attempt, after an edit, a suspension or the annotation htc.cern.ch/rerun, begins with:
	// All, when absent: everything runs again; or FromFailure: nodes that have succeeded in the attempt before are not
	// run again, unless one before them is, or what is pulled from them is gone.
	// +optional
	Resume Resume `json:"resume,omitempty"`

	// Suspend, while true, keeps the jobs out of HTCondor: none is sent, and those
	// that were sent are removed. Set back to false, all are sent, as a new
	// attempt if some had been sent before.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// TTLSecondsAfterFinished is how long the HTCWorkflow is kept after its end,
	// with its output; without it, until somebody deletes it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// ActiveDeadlineSeconds is how long an attempt may take from its submission
	// to its end. Its jobs are then removed, and it has failed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// KeepArtifacts leaves what the steps have pushed where it is when the HTCWorkflow is deleted, also in registries
	// that htcd's administrator has declared ephemeral. In others it stays in any case.
	// +optional
	KeepArtifacts bool `json:"keepArtifacts,omitempty"`

	// Ports of the nodes are reached by a Service of the HTCWorkflow's name, until it has ended. The namespace needs
	// deploy/components/ports; without it the field means nothing.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MaxItems=8
	Ports []WorkflowPort `json:"ports,omitempty"`

	Handover `json:",inline"`

	// Pool says where to send the jobs, where htcd's administrator allows a choice.
	// +optional
	Pool *Pool `json:"pool,omitempty"`

	Runner `json:",inline"`
}

// Sequences says how many times the steps are run, and with which variables.
//
// +kubebuilder:validation:XValidation:rule="[has(self.count), has(self.items), has(self.itemsFrom)].filter(x, x).size() <= 1",message="count, items and itemsFrom each say how many sequences there are: keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.complete) || has(self.itemsFrom) || self.complete <= (has(self.count) ? self.count : has(self.items) ? self.items.size() : 1)",fieldPath=".complete",message="complete must be at most the number of sequences"
// +kubebuilder:validation:XValidation:rule="!has(self.completions) || !has(self.itemsFrom) && self.completions <= (has(self.count) ? self.count : has(self.items) ? self.items.size() : 1)",fieldPath=".completions",message="completions must be at most count, or the number of items, which say how many sequences may be begun in all; itemsFrom cannot stand beside it"
// +kubebuilder:validation:XValidation:rule="!has(self.completions) || !has(self.complete)",fieldPath=".completions",message="complete is about sequences that are all begun, completions about such as are begun when others have failed: keep one of them"
type Sequences struct {
	// Count is how many sequences there are, 1 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Count *int32 `json:"count,omitempty"`

	// Items has one element for each sequence, with variables of its scripts: it
	// replaces count. An item's variable overrides that of environment.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.size() <= 1000 && self.map(i, size(i)).sum() <= 2000 && self.map(i, i.map(k, size(k) + size(i[k]) + 2).sum()).sum() <= 65536",optionalOldSelf=true,message="items must be at most 1,000, and 2,000 variables and 64 KiB together: put them into a ConfigMap and name it in itemsFrom, which takes 100,000"
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.size() > 1000 || self.map(i, size(i)).sum() > 2000 || self.all(i, i.all(k, size(k) <= 128 && k.matches('^[A-Za-z_][A-Za-z0-9_]*$')))",optionalOldSelf=true,message="a variable's name must be letters, digits and _, at most 128, and not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.size() > 1000 || self.map(i, size(i)).sum() > 2000 || self.all(i, i.all(k, !k.matches('^(HTCPROCID|HOME|E?UID|GID|PROMPT_COMMAND|(PRE|AP)PEND_PATH)$|^(_CONDOR_|APPTAINER|SINGULARITY)')))",optionalOldSelf=true,message="HTCPROCID, HOME, UID, EUID, GID, PROMPT_COMMAND, PREPEND_PATH, APPEND_PATH and names that begin with _CONDOR_, APPTAINER or SINGULARITY are set by htcd, HTCondor or apptainer: choose another name, or set them in the script"
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.size() > 1000 || self.map(i, size(i)).sum() > 2000 || self.all(i, !['jobid', 'outpath', 'registry', 'pull_tag', 'push_tag'].exists(k, k in i))",optionalOldSelf=true,message="jobid, outpath, registry, pull_tag and push_tag are set by htcd: choose another name"
	Items []SequenceItem `json:"items,omitempty"`

	// ItemsFrom takes the items from a table, which is read when the attempt begins.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.step)",fieldPath=".step",message="only the jobs of forEach can be those of a table that a step writes: name a ConfigMap or an HTCJob"
	ItemsFrom *ItemsFrom `json:"itemsFrom,omitempty"`

	// MaxConcurrent is how many sequences are at work at a time; all when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`

	// Complete is how many sequences that have succeeded are enough: what is left of the others is then
	// removed, and the workflow has succeeded. All when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Complete *int32 `json:"complete,omitempty"`

	// Completions is how many sequences must succeed. No more are begun at first, and as many further ones as have
	// failed when all of them have ended, until so many have succeeded, or there are no more by count or items. All are
	// begun when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Completions *int32 `json:"completions,omitempty"`

	// Prefix is what a sequence's name, the variable jobid, begins with, before its number; job_ when absent.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	Prefix string `json:"prefix,omitempty"`
}

// SequenceItem is the variables of one sequence.
type SequenceItem Item

// FailurePolicy says what the failure of a step ends.
//
// +kubebuilder:validation:Enum=Continue;Abort
type FailurePolicy string

// The failure policies.
const (
	FailureContinue FailurePolicy = "Continue" // its own sequence
	FailureAbort    FailurePolicy = "Abort"    // everything
)

// Resume says what a new attempt begins with.
//
// +kubebuilder:validation:Enum=All;FromFailure
type Resume string

// What a new attempt begins with.
const (
	ResumeAll         Resume = "All"         // the first step
	ResumeFromFailure Resume = "FromFailure" // what has not succeeded
)

// Throttle bounds how much of a workflow is in HTCondor at once.
type Throttle struct {
	// MaxIdle holds back further jobs while that many wait for a slot.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxIdle *int32 `json:"maxIdle,omitempty"`

	// MaxJobs is how many jobs may be in HTCondor at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxJobs *int32 `json:"maxJobs,omitempty"`

	// PerStep is how many jobs of a step may be in HTCondor at once, by the steps' names.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	PerStep map[string]StepLimit `json:"perStep,omitempty"`

	// Together is how many jobs of several steps may be in HTCondor at once, for what these steps share. A step has one
	// limit, here or in perStep.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=25
	Together []SharedLimit `json:"together,omitempty"`
}

// SharedLimit bounds the jobs of several steps together.
type SharedLimit struct {
	// Steps are the names of the steps.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Steps []StepName `json:"steps"`

	// MaxJobs is how many of their jobs may be in HTCondor at once.
	// +required
	MaxJobs StepLimit `json:"maxJobs"`
}

// StepLimit is how many jobs of one step may be in HTCondor at once.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=100000
type StepLimit int32
