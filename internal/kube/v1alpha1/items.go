package v1alpha1

// The time that the apiserver takes for a rule grows with the square of the list that the rule goes through: 0.4 s for each rule over
// 10,000 items, at every request, also for the status. So the rules for names belong to a single item, and that for the size is
// passed over when the items are as before.

// Item is the variables of one job, besides and before those of environment.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && k.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",message="a variable's name must be letters, digits and _, at most 128, and not begin with a digit"
// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(HTCPROCID|HOME|E?UID|GID|PROMPT_COMMAND|(PRE|AP)PEND_PATH)$|^(_CONDOR_|APPTAINER|SINGULARITY)'))",message="HTCPROCID, HOME, UID, EUID, GID, PROMPT_COMMAND, PREPEND_PATH, APPEND_PATH and names that begin with _CONDOR_, APPTAINER or SINGULARITY are set by htcd, HTCondor or apptainer: choose another name, or set them in the script"
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
	ConfigMapKeyRef KeyRef `json:"configMapKeyRef"`
}

// Parameter lists the values of one variable.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=10000
type Parameter []ItemValue
