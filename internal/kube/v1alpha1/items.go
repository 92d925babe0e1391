package v1alpha1

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
	// ConfigMapKeyRef names a ConfigMap of this HTCJob's namespace. The value is JSON, a list of objects
	// of strings, numbers and booleans, or CSV whose first line has the variables' names.
	// +required
	ConfigMapKeyRef KeyRef `json:"configMapKeyRef"`
}

// Parameter lists the values of one variable.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=10000
type Parameter []ItemValue
