package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HTCWorkflowStatus says what has become of a workflow in HTCondor. It counts nodes, and lists none but the first that
// failed: a node is one job of a step, of one sequence or of all.
type HTCWorkflowStatus struct {
	// Phase is one word for all of it. Succeeded, Failed and Removed are final
	// for an attempt: nothing of it is left in HTCondor. So it is with Suspended.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Reason is that of the condition which blocks progress, or of the failure;
	// empty when there is none, NoStatus before htcd has seen the HTCWorkflow.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is the same in a sentence; without a reason, how far the nodes are.
	// +optional
	Message string `json:"message,omitempty"`

	// Sequences counts the sequences.
	// +optional
	Sequences SequenceCounts `json:"sequences"`

	// Nodes counts all nodes.
	// +optional
	Nodes NodeCounts `json:"nodes"`

	// Steps counts the nodes of each step, in the order of spec.steps; that of spec.finally is the last.
	// +optional
	// +listType=map
	// +listMapKey=name
	Steps []StepStatus `json:"steps,omitempty"`

	// Metrics sums up what the scripts have measured, by step and name: the first 100. Results of a job that never
	// called back come with its output.
	// +optional
	// +listType=atomic
	Metrics []MetricStatus `json:"metrics,omitempty"`

	// MaxConcurrent is how many sequences may be at work at a time, once a rule has changed that.
	// +optional
	MaxConcurrent int32 `json:"maxConcurrent,omitempty"`

	// JobID lists the ids in HTCondor of the DAGMan jobs of this attempt, "cluster.0", in the order in which they were
	// sent.
	// +optional
	// +listType=atomic
	JobID []string `json:"jobid,omitempty"`

	// Schedd is the name of the schedd that holds the jobs.
	// +optional
	Schedd string `json:"schedd,omitempty"`

	// Attempt counts the times this HTCWorkflow has been sent, beginning with 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// SpecHash identifies the spec of this attempt.
	// +optional
	SpecHash string `json:"specHash,omitempty"`

	// Rerun is the value that the annotation htc.cern.ch/rerun had for this attempt; of one longer than 256 bytes its
	// beginning, and a hash.
	// +optional
	Rerun string `json:"rerun,omitempty"`

	// ItemsDigest identifies the tables in ConfigMaps that this attempt was begun with: the items of sequences and
	// steps, nodes and edges.
	// +optional
	ItemsDigest string `json:"itemsDigest,omitempty"`

	// InputsDigest identifies what the inputs of the steps that were sent last held; empty without inputs that htcd
	// brings.
	// +optional
	InputsDigest string `json:"inputsDigest,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// StartTime is when the first of this attempt was accepted by the schedd.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the last of its jobs ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// LastChecked is when the schedd last confirmed this status, to the minute.
	// It no longer changes after the last job has ended.
	// +optional
	LastChecked *metav1.Time `json:"lastChecked,omitempty"`

	// ExitCode is the abortReturn of the step that has ended the workflow, unless it is 0 and finally has failed.
	// Without one it is 0 when the workflow has succeeded, and the script's return code when the nodes that failed and
	// are known have the same one; absent otherwise.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// Result is what spec.result names, of every job of the last of spec.steps, at most 4 KiB: of one job its text
	// without the last line end; of several one line of each, in the order of the sequences and of the items in them.
	// Absent until the workflow and every job of that step have succeeded and all output is here.
	// +optional
	Result *string `json:"result,omitempty"`

	// Failures describes the first nodes that failed, at most ten.
	// +optional
	// +listType=atomic
	Failures []NodeFailure `json:"failures,omitempty"`

	// Conditions explain the phase; their types are those of HTCJobs.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AsJobs returns the status of an HTCJob whose jobs are the nodes. Those that will never run are in none of its counts.
func (w HTCWorkflowStatus) AsJobs() HTCJobStatus {
	s := HTCJobStatus{
		Phase:              w.Phase,
		Reason:             w.Reason,
		Message:            w.Message,
		Conditions:         w.Conditions,
		ObservedGeneration: w.ObservedGeneration,
		Attempt:            w.Attempt,
		Rerun:              w.Rerun,
		JobID:              w.JobID,
		Schedd:             w.Schedd,
		StartTime:          w.StartTime,
		CompletionTime:     w.CompletionTime,
		Succeeded:          w.Nodes.Done,
		Failed:             w.Nodes.Failed,
		Idle:               w.Nodes.Idle,
		Running:            w.Nodes.Running,
		Held:               w.Nodes.Held,
		OutputFetched:      meta.IsStatusConditionTrue(w.Conditions, ConditionOutputFetched),
		ExitCode:           w.ExitCode,
		Result:             w.Result,
	}
	if !w.Phase.Terminal() && w.Phase != PhaseSuspended {
		s.Active = w.Nodes.Total - w.Nodes.Done - w.Nodes.Failed - w.Nodes.Futile
	}
	for _, f := range w.Failures {
		failure := f.Failure
		failure.JobID = f.Node
		s.Failures = append(s.Failures, failure)
	}
	return s
}

// SequenceCounts counts sequences by how far they are.
type SequenceCounts struct {
	// Total counts all of them.
	// +optional
	Total int32 `json:"total"`

	// Active counts those of which a node has begun and which have not ended.
	// +optional
	Active int32 `json:"active"`

	// Succeeded counts those in which every node is done, or has failed within the maxFailures of its step.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// Failed counts those in which a node can no longer run, or more nodes have failed than maxFailures of their step.
	// +optional
	Failed int32 `json:"failed"`
}

// NodeCounts counts nodes by their state. A node that is in none of them waits for those before it, or was removed.
type NodeCounts struct {
	// Total counts all of them, also those that are not in HTCondor yet.
	// +optional
	Total int32 `json:"total"`

	// Done counts those that have succeeded.
	// +optional
	Done int32 `json:"done"`

	// Running counts those that run.
	// +optional
	Running int32 `json:"running"`

	// Idle counts those that wait in HTCondor for a slot.
	// +optional
	Idle int32 `json:"idle"`

	// Held counts those on hold.
	// +optional
	Held int32 `json:"held"`

	// Failed counts those that have failed, their retries used up.
	// +optional
	Failed int32 `json:"failed"`

	// Futile counts those that never run because one before them failed.
	// +optional
	Futile int32 `json:"futile"`
}

// StepStatus counts the nodes of one step.
type StepStatus struct {
	// Name is that of the step.
	// +required
	Name StepName `json:"name"`

	NodeCounts `json:",inline"`
}

// MaxMetrics is how many metrics a status has at most.
const MaxMetrics = 100

// MetricStatus sums up the results of one name that jobs of a step have reported.
type MetricStatus struct {
	// Step is whose jobs they are of.
	// +required
	Step StepName `json:"step"`

	// Metric is the name of the results.
	// +required
	Metric string `json:"metric"`

	// Count is how many jobs have reported it.
	// +required
	Count int32 `json:"count"`

	// Mean is the sum of the results, divided by their number.
	// +required
	Mean float64 `json:"mean"`

	// Variance is that of a sample: the sum of the squares of the distances to the mean, divided by count - 1.
	// +required
	Variance float64 `json:"variance"`

	// Min is the least result.
	// +required
	Min float64 `json:"min"`

	// Max is the greatest result.
	// +required
	Max float64 `json:"max"`

	// IQR is the distance between the first and the third quartile.
	// +required
	IQR float64 `json:"iqr"`

	// MAD is the median of the distances to the median.
	// +required
	MAD float64 `json:"mad"`
}

// NodeFailure says how one node failed.
type NodeFailure struct {
	// Node is STEP/JOBID, or STEP/JOBID/NUMBER with forEach; the directory of its output has the same name.
	// JOBID is the name of its sequence, "all", or its own in spec.graph.
	// +required
	Node string `json:"node"`

	// Sequence is the number of its sequence; absent for a step that runs once for all.
	// +optional
	Sequence *int32 `json:"sequence,omitempty"`

	Failure `json:",inline"`
}
