package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HTCJobStatus says what has become of the jobs in HTCondor. Active, Succeeded and
// Failed are always present, zeros included, so that a condition such as
// Argo's `status.succeeded > 0` can be evaluated at any time.
type HTCJobStatus struct {
	// Active counts the jobs that have not ended: idle, running, held or on
	// their way to the schedd.
	// +required
	// +kubebuilder:default=0
	Active int32 `json:"active"`

	// Succeeded counts the jobs that ended with return code 0, or with one of
	// successExitCodes where those are set.
	// +required
	// +kubebuilder:default=0
	Succeeded int32 `json:"succeeded"`

	// Failed counts the jobs that ended in any other way.
	// +required
	// +kubebuilder:default=0
	Failed int32 `json:"failed"`

	// Stopped counts the jobs that were removed because maxFailures was reached, or successPolicy met: they have
	// neither succeeded nor failed.
	// +optional
	Stopped int32 `json:"stopped,omitempty"`

	// JobID lists the jobs' ids in HTCondor, "cluster.proc". Past the first
	// 1,000 it goes on in ranges: "cluster.first-last".
	// +optional
	// +listType=atomic
	JobID []string `json:"jobid,omitempty"`

	// Phase is one word for all of it. Succeeded, Failed and Removed are final
	// for an attempt.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Reason is that of the condition which blocks progress, or of the failure;
	// empty when there is none, NoStatus before htcd has seen the HTCJob.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is the same in a sentence; without a reason, how far the jobs are.
	// +optional
	Message string `json:"message,omitempty"`

	// ExitCode is 0 when every job has succeeded, and the script's return code
	// when those that failed and are known have the same one; absent otherwise.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// OutputFetched is true when the attempt has ended and htcd has the output of
	// every job that ran to its end.
	// +optional
	OutputFetched bool `json:"outputFetched"`

	// Result is what spec.result names, of every job, at most 4 KiB: of one job its
	// text without the last line end; of several one line of each, in their order.
	// Absent until every job has succeeded and all output is here.
	// +optional
	Result *string `json:"result,omitempty"`

	// ClusterID is the cluster that holds the jobs of this attempt.
	// +optional
	ClusterID int32 `json:"clusterId,omitempty"`

	// Schedd is the name of the schedd that holds the cluster.
	// +optional
	Schedd string `json:"schedd,omitempty"`

	// Idle counts the active jobs that wait for a slot.
	// +optional
	Idle int32 `json:"idle"`

	// Running counts the active jobs that run.
	// +optional
	Running int32 `json:"running"`

	// Held counts the active jobs that are on hold.
	// +optional
	Held int32 `json:"held"`

	// Waiting counts the active jobs that HTCondor has not put into its queue yet: because of spec.parallelism, or as
	// enough others wait there.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`

	// Parallelism is how many jobs of this attempt may be in HTCondor's queue at a time; absent if it was sent as one
	// cluster.
	// +optional
	Parallelism int32 `json:"parallelism,omitempty"`

	// Attempt counts the times this HTCJob has been sent, beginning with 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// SpecHash identifies the spec of this attempt.
	// +optional
	SpecHash string `json:"specHash,omitempty"`

	// Rerun is the value that the annotation htc.cern.ch/rerun had for this attempt; of one longer than 256 bytes its
	// beginning, and a hash.
	// +optional
	Rerun string `json:"rerun,omitempty"`

	// Partial says which of the jobs this attempt runs; absent if it is all of them.
	// +optional
	Partial *Partial `json:"partial,omitempty"`

	// InputsDigest identifies the content of spec.inputs in this attempt.
	// +optional
	InputsDigest string `json:"inputsDigest,omitempty"`

	// ItemsDigest identifies the table of spec.itemsFrom in this attempt.
	// +optional
	ItemsDigest string `json:"itemsDigest,omitempty"`

	// Effective says what holds for this attempt, with the defaults and adjustments of its pool.
	// +optional
	Effective *Effective `json:"effective,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// User is the account of the jobs in HTCondor: their Owner.
	// +optional
	User string `json:"user,omitempty"`

	// StartedAt is when the first of the jobs first started to run, as HTCondor says.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// Duration is how long the jobs ran in all, from the first start to the last end, as
	// HTCondor says: 1h2m3s. It appears when HTCondor has confirmed the end of every job.
	// +optional
	Duration string `json:"duration,omitempty"`

	// Usage is what the jobs of this attempt used, of what they asked for. It appears when HTCondor has confirmed the
	// end of every job; absent if none has started.
	// +optional
	Usage *Usage `json:"usage,omitempty"`

	// StartTime is when this attempt was accepted by the schedd.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the last of its jobs ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// LastChecked is when the schedd last confirmed this status, to the minute.
	// It no longer changes after the last job has ended.
	// +optional
	LastChecked *metav1.Time `json:"lastChecked,omitempty"`

	// Failures describes the first jobs that failed, at most ten.
	// +optional
	// +listType=atomic
	Failures []Failure `json:"failures,omitempty"`

	// Outputs lists what the jobs have written elsewhere, to a url or as an
	// artifact: the first 100, as far as 64 KiB suffice for.
	// +optional
	// +listType=atomic
	Outputs []WrittenOutput `json:"outputs,omitempty"`

	// Conditions explain the phase; their types are the Condition constants.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedWith returns the script's return code that all described failures have, nil if they differ or one has none.
func (s HTCJobStatus) FailedWith() *int32 {
	var code *int32
	for _, f := range s.Failures {
		if f.ExitCode == nil || *f.ExitCode < 1 || *f.ExitCode > 255 || code != nil && *code != *f.ExitCode {
			return nil
		}
		code = f.ExitCode
	}
	return code
}

// Partial is an attempt that runs only some of the jobs. The counts and the output are of all of them.
type Partial struct {
	// Procs are the numbers of the jobs that it runs, such as 3,7-9; cut after 16 KiB.
	// +required
	Procs string `json:"procs"`

	// Succeeded counts the others that had succeeded before.
	// +required
	Succeeded int32 `json:"succeeded"`

	// Failed counts the others that had failed before.
	// +required
	Failed int32 `json:"failed"`
}

// Usage is what the jobs of an attempt used in their last executions.
type Usage struct {
	// Jobs counts those that have started.
	// +required
	Jobs int32 `json:"jobs"`

	// CPU is how many cores they kept busy on average.
	// +optional
	CPU *Used `json:"cpu,omitempty"`

	// Memory is the most that each used, as HTCondor has measured and rounded it.
	// +optional
	Memory *Used `json:"memory,omitempty"`

	// Disk is the most that each had in its directory, its inputs included.
	// +optional
	Disk *Used `json:"disk,omitempty"`

	// Advice says in a sentence what to ask for next time.
	// +optional
	Advice string `json:"advice,omitempty"`
}

// Used is the usage of one resource.
type Used struct {
	// Requested is what they asked for, the most if they differ; absent if they left it to the pool.
	// +optional
	Requested *resource.Quantity `json:"requested,omitempty"`

	// Median is the usage that half of the jobs did not exceed.
	// +required
	Median resource.Quantity `json:"median"`

	// Worst is the usage of the job that used most.
	// +required
	Worst resource.Quantity `json:"worst"`

	// WorstProc is the number of that job in the HTCJob.
	// +required
	WorstProc int32 `json:"worstProc"`
}

// Effective is what holds for an attempt after its pool's defaults and adjustments.
type Effective struct {
	// Pool is the name of the HTCPool; absent if the attempt was sent by htcd's flags alone.
	// +optional
	Pool string `json:"pool,omitempty"`

	// Resources is what is requested for each job.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// ActiveDeadlineSeconds is how long the attempt may take from its submission to its end.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	Deadlines `json:",inline"`

	// Retries is how often HTCondor runs a job again that failed by its return code.
	// +optional
	Retries *int32 `json:"retries,omitempty"`

	// AccountingGroup is the group that the use of the pool is counted for.
	// +optional
	AccountingGroup string `json:"accountingGroup,omitempty"`

	// TTLSecondsAfterFinished is how long the HTCJob is kept after its end.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// Failure says how one job failed.
type Failure struct {
	// JobID is the job's id in HTCondor, "cluster.proc".
	// +required
	JobID string `json:"jobid"`

	// Proc is the job's number in the HTCJob, from 0; absent for a node of a workflow.
	// +optional
	Proc *int32 `json:"proc,omitempty"`

	// Item is the variables that only this job has, NAME=value, of items, itemsFrom or parameters; cut after 256 bytes.
	// +optional
	Item string `json:"item,omitempty"`

	// ExitCode is the script's return code, absent when it has none.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// Signal is the signal that ended the job, absent when none did.
	// +optional
	Signal *int32 `json:"signal,omitempty"`

	// Reason is one CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is the same in a sentence, with HTCondor's own words if it gave any.
	// +optional
	Message string `json:"message,omitempty"`

	// Stderr is the end of the job's standard error: as the job has told it when its script had failed, or when
	// HTCondor was about to hold it, and as it was fetched.
	// +optional
	Stderr string `json:"stderr,omitempty"`
}

// WrittenOutput is an output that one job has written elsewhere.
type WrittenOutput struct {
	// Path is that of spec.outputs.
	// +required
	Path string `json:"path"`

	// Proc is the job's number.
	// +required
	Proc int32 `json:"proc"`

	// URL is where the execute node has written it.
	// +optional
	URL string `json:"url,omitempty"`

	// Artifact is the reference to which it was pushed.
	// +optional
	Artifact string `json:"artifact,omitempty"`

	// Size is that of the file, or of all files of the artifact, in bytes; absent if it is not known.
	// +optional
	Size *int64 `json:"size,omitempty"`

	// Digest is the checksum of the file, or the digest of the artifact's manifest; absent if it is not known.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// Phase is one word for where an HTCJob stands.
//
// +kubebuilder:validation:Enum=Pending;Submitting;Idle;Running;Held;Suspended;Succeeded;Failed;Removed
type Phase string

const (
	PhasePending    Phase = "Pending"    // nothing was sent yet
	PhaseSubmitting Phase = "Submitting" // on its way to the schedd, or spooling there
	PhaseIdle       Phase = "Idle"       // waits for a slot
	PhaseRunning    Phase = "Running"    // at least one job runs
	PhaseHeld       Phase = "Held"       // what is active is on hold
	PhaseSuspended  Phase = "Suspended"  // kept out of HTCondor by spec.suspend
	PhaseSucceeded  Phase = "Succeeded"  // every job has succeeded, or as many as spec.successPolicy asks for
	PhaseFailed     Phase = "Failed"     // all ended, at least one otherwise; or the description was refused
	PhaseRemoved    Phase = "Removed"    // taken out of HTCondor by somebody else
)

// Terminal says whether the phase is final for its attempt.
func (p Phase) Terminal() bool {
	return p == PhaseSucceeded || p == PhaseFailed || p == PhaseRemoved
}

// The types of an HTCJob's conditions.
const (
	ConditionSubmitted        = "Submitted"          // the schedd has the jobs of this attempt
	ConditionInputsReady      = "InputsReady"        // what the spec names for the jobs has been read; absent if that is nothing
	ConditionCredentialsFresh = "CredentialsFresh"   // the credentials of active jobs are valid, and for some time more
	ConditionComplete         = "Complete"           // every job has succeeded, or as many as spec.successPolicy asks for
	ConditionFailed           = "Failed"             // the attempt is over and did not succeed
	ConditionFailureTarget    = "FailureTarget"      // spec.maxFailures was reached, and the rest is removed; absent otherwise
	ConditionSuccessCriteria  = "SuccessCriteriaMet" // spec.successPolicy was met, and the rest is removed; absent otherwise
	ConditionHeld             = "Held"               // at least one job is on hold, and why
	ConditionMatchable        = "Matchable"          // the pool has slots for the jobs that wait; absent unless some have waited for a minute
	ConditionSuspended        = "Suspended"          // spec.suspend keeps the jobs out of HTCondor
	ConditionOutputFetched    = "OutputFetched"      // htcd has the output of every job that ran to its end
	ConditionOutputsPushed    = "OutputsPushed"      // the artifacts of spec.outputs are in their registries; absent if there are to be none
	ConditionLogsPod          = "LogsPod"            // the Pod of spec.logsPod is there; absent when there is to be none
	ConditionBackendReachable = "BackendReachable"   // the schedd answered when last asked
	ConditionReconciling      = "Reconciling"        // kstatus: in progress; absent when not
	ConditionStalled          = "Stalled"            // kstatus: failed; absent when not
	ConditionRerunRefused     = "RerunRefused"       // the annotations ask for jobs that cannot run again; absent otherwise
	ConditionCancelRefused    = "CancelRefused"      // the annotation asks for jobs that cannot be cancelled; absent otherwise
	ConditionRepeatExhausted  = "RepeatExhausted"    // a rule of an HTCWorkflow would repeat more, but may not; absent otherwise
	ConditionCredentials      = "Credentials"        // there is a valid ticket or token to submit with
)
