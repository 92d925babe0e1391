package v1alpha1

// Whatever is written of an HTCJob, its status included, the apiserver reads, compares, checks and writes the whole object: a variable costs it some 15 us
// each time, and every rule for each item as much again. So the items of an object are bounded to what costs less than 0.1 s,
// and the rules belong to the list and are passed over when that is as before (docs/performance.md).

// Item is the variables of one job, besides and before those of environment.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=16
type Item map[string]ItemValue

// ItemValue is the value of one variable.
//
// +kubebuilder:validation:MaxLength=4096
// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]*$`
type ItemValue string

// ItemsFrom says where a table of items is.
type ItemsFrom struct {
	// ConfigMapKeyRef names a ConfigMap of the same namespace. The value is JSON, a list of objects
	// of strings, numbers and booleans, or CSV whose first line has the variables' names.
	// +required
	// +kubebuilder:validation:XValidation:rule="!self.key.contains('{')",fieldPath=".key",message="the key of a table must be letters, digits and - _ ."
	ConfigMapKeyRef KeyRef `json:"configMapKeyRef"`
}

// Parameter lists the values of one variable.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=10000
type Parameter []ItemValue
