package v1alpha1

import "k8s.io/apimachinery/pkg/util/intstr"

// EarlyEnd says when an attempt ends before all its jobs have ended.
type EarlyEnd struct {
	// MaxFailures is how many jobs of an attempt may fail until what has not started is removed and the attempt has
	// failed, reason MaxFailuresReached: a number, or a part of the attempt's jobs such as 5%, rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1000000 : string(self).matches('^([1-9][0-9]?|100)%$')",message="maxFailures must be a number of jobs from 1 to 1000000, such as 20, or a part of them from 1% to 100%, such as 5%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// OnMaxFailures says what is removed when maxFailures is reached: RemoveWaiting, what does not run, when absent; or
	// RemoveAll, what runs as well.
	// +optional
	OnMaxFailures OnMaxFailures `json:"onMaxFailures,omitempty"`

	// SuccessPolicy says which successes are enough. When they are there, the other jobs are removed and the attempt
	// has succeeded.
	// +optional
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`
}

// OnMaxFailures says what is removed when maxFailures is reached.
//
// +kubebuilder:validation:Enum=RemoveWaiting;RemoveAll
type OnMaxFailures string

// What is removed.
const (
	RemoveWaiting OnMaxFailures = "RemoveWaiting"
	RemoveAll     OnMaxFailures = "RemoveAll"
)

// SuccessPolicy is that of a batch/v1 Job: the attempt has succeeded as soon as one of the rules is met.
type SuccessPolicy struct {
	// Rules are tried in their order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Rules []SuccessRule `json:"rules"`
}

// SuccessRule is met when enough jobs have succeeded.
//
// +kubebuilder:validation:XValidation:rule="has(self.succeededIndexes) || has(self.succeededCount)",message="a rule needs succeededCount, succeededIndexes, or both"
type SuccessRule struct {
	// SucceededIndexes are the numbers of the jobs that count, such as 0,3-7; all when absent.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$')",message="succeededIndexes must be numbers and ranges with commas between them, such as 0,3-7"
	SucceededIndexes string `json:"succeededIndexes,omitempty"`

	// SucceededCount is how many of them must have succeeded; all of succeededIndexes when absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	SucceededCount *int32 `json:"succeededCount,omitempty"`
}
