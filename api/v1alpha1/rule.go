package v1alpha1

// Rule does something when a number meets a condition: a result of the scripts of a step, summed up by a function, or,
// without a function, a count of sequences or jobs.
//
// +kubebuilder:validation:XValidation:rule="self.action == 'Repeat' ? has(self.step) && !has(self.function) : has(self.function) ? has(self.step) : self.metric in ['success', 'failure', 'queued', 'running', 'held']",message="a result of scripts needs step and, except for Repeat, function; without a function metric is success, failure, queued, running or held"
// +kubebuilder:validation:XValidation:rule="has(self.function) || !has(self.minCount)",fieldPath=".minCount",message="minCount is about a result of scripts: add function, or drop it"
// +kubebuilder:validation:XValidation:rule="self.action != 'Finish' || !has(self.times) && !has(self.backoff)",message="Finish acts once: times and backoff are for other actions"
// +kubebuilder:validation:XValidation:rule="self.action != 'Repeat' || !has(self.times) || self.times <= 10",fieldPath=".times",message="Repeat repeats at most 10 times"
// +kubebuilder:validation:XValidation:rule="self.action in ['Grow', 'Shrink'] || !has(self.by)",fieldPath=".by",message="by is for Grow and Shrink"
// +kubebuilder:validation:XValidation:rule="self.action == 'Grow' || !has(self.max)",fieldPath=".max",message="max is for Grow"
// +kubebuilder:validation:XValidation:rule="self.action == 'Shrink' || !has(self.min)",fieldPath=".min",message="min is for Shrink"
type Rule struct {
	// Step is the one whose scripts have measured the metric, or whose jobs are counted.
	// +optional
	Step StepName `json:"step,omitempty"`

	// Metric is the name of a result, as scripts write it to $HTC_RESULTS, or duration: how long each script ran, in
	// seconds. Without function it is one of these counts: success and failure (of sequences; with step, of its jobs),
	// queued (jobs that wait in HTCondor for a slot), running, held.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_.-]{0,62}$`
	Metric string `json:"metric"`

	// Function makes one number of the results of all jobs: count, mean, variance (of a sample), min, max, iqr (the
	// distance between the first and the third quartile), or mad (the median of the distances to the median).
	// +optional
	Function MetricFunction `json:"function,omitempty"`

	// When is the condition on that number: `value > 2.0`, or several such comparisons (< <= > >= == !=) joined by &&
	// and ||. When absent it always holds, as soon as there is such a number: Repeat then repeats every sequence as
	// often as times says.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *value *(<=|>=|==|!=|<|>) *-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,2})? *((&&|[|][|]) *value *(<=|>=|==|!=|<|>) *-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,2})? *)*$')",message="expected comparisons such as value > 2.0, joined by && or ||"
	When string `json:"when,omitempty"`

	// MinCount is how many results there must be before the rule is looked at; 1 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MinCount *int32 `json:"minCount,omitempty"`

	// Action is what is done. Finish: what is left of the sequences is removed, and the workflow has succeeded if what
	// comes after them does. Grow and Shrink change sequences.maxConcurrent for the rest of the attempt. Repeat runs
	// the step, and all after it, again in the sequences whose own result meets the condition, when the others have
	// ended, too.
	// +required
	Action RuleAction `json:"action"`

	// By is how many sequences more, or fewer, may be at work; 1 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	By *int32 `json:"by,omitempty"`

	// Max is what Grow does not exceed; the number of sequences when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Max *int32 `json:"max,omitempty"`

	// Min is what Shrink does not go below; 1 when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Min *int32 `json:"min,omitempty"`

	// Times is how often the rule acts at most in an attempt; any number of times when absent. For Repeat: for each
	// sequence, once when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Times *int32 `json:"times,omitempty"`

	// Backoff, such as 30s or 10m, is after how long the rule acts again while its condition still holds. When absent
	// it acts once each time the condition becomes true. A rule never acts twice within 10 s. For Repeat: after how
	// long the sequences run again.
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,4}[smh]$`
	Backoff string `json:"backoff,omitempty"`
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
// +kubebuilder:validation:Enum=Finish;Grow;Shrink;Repeat
type RuleAction string

// The actions.
const (
	ActionFinish RuleAction = "Finish"
	ActionGrow   RuleAction = "Grow"
	ActionShrink RuleAction = "Shrink"
	ActionRepeat RuleAction = "Repeat"
)

// MetricDuration is how long a script has run, in seconds. Where a rule names it, it is a result that scripts need not
// write.
const MetricDuration = "duration"

// The metrics that are counts.
const (
	MetricSuccess = "success"
	MetricFailure = "failure"
	MetricQueued  = "queued"
	MetricRunning = "running"
	MetricHeld    = "held"
)
