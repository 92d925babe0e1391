package v1alpha1

// Rule does something, once in an attempt, when a number meets a condition: a result of the scripts of a step, summed up by a function, or, without a function, a
// count of sequences or jobs.
//
// +kubebuilder:validation:XValidation:rule="has(self.function) ? has(self.step) : self.metric in ['success', 'failure', 'queued', 'running', 'held']",message="a result of scripts needs step and function; without a function metric is success, failure, queued, running or held"
// +kubebuilder:validation:XValidation:rule="has(self.function) || !has(self.minCount)",fieldPath=".minCount",message="minCount is about a result of scripts: add function, or drop it"
type Rule struct {
	// Step is the one whose scripts have measured the metric, or whose jobs are counted.
	// +optional
	Step StepName `json:"step,omitempty"`

	// Metric is the name of a result, as scripts write it to $HTC_RESULTS. Without function it is one of these counts: success and
	// failure (of sequences; with step, of its jobs), queued (jobs that wait in HTCondor for a slot), running, held.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_.-]{0,62}$`
	Metric string `json:"metric"`

	// Function makes one number of the results of all jobs: count, mean, variance (of a sample), min, max, iqr (the distance between the
	// first and the third quartile), or mad (the median of the distances to the median).
	// +optional
	Function MetricFunction `json:"function,omitempty"`

	// When is the condition on that number: `value > 2.0`, or several such comparisons (< <= > >= == !=) joined by && and ||.
	// +required
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *value *(<=|>=|==|!=|<|>) *-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,2})? *((&&|[|][|]) *value *(<=|>=|==|!=|<|>) *-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,2})? *)*$')",message="expected comparisons such as value > 2.0, joined by && or ||"
	When string `json:"when"`

	// MinCount is how many results there must be before the rule is looked at; 1 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MinCount *int32 `json:"minCount,omitempty"`

	// Action is what is done. Finish: what is left of the sequences is removed, and the workflow has succeeded if what comes after them does.
	// +required
	Action RuleAction `json:"action"`
}

// MetricFunction makes one number of many.
//
// +kubebuilder:validation:Enum=count;mean;variance;min;max;iqr;mad
type MetricFunction string

// The functions.
const (
	FunctionCount    MetricFunction = "count"
	FunctionMean     MetricFunction = "mean"
	FunctionVariance MetricFunction = "variance"
	FunctionMin      MetricFunction = "min"
	FunctionMax      MetricFunction = "max"
	FunctionIQR      MetricFunction = "iqr"
	FunctionMAD      MetricFunction = "mad"
)

// RuleAction is what a rule does.
//
// +kubebuilder:validation:Enum=Finish
type RuleAction string

// ActionFinish is the only one.
const ActionFinish RuleAction = "Finish"

// The metrics that are counts.
const (
	MetricSuccess = "success"
	MetricFailure = "failure"
	MetricQueued  = "queued"
	MetricRunning = "running"
	MetricHeld    = "held"
)
