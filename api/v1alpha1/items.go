package v1alpha1

import "fmt"

// Whatever is written of an HTCJob, its status included, the apiserver reads, compares, checks and writes the whole
// object: a variable costs it some 15 us each time, and every rule for each item as much again. So the items of an
// object are bounded to what costs less than 0.1 s, and the rules belong to the list and are passed over when that is
// as before (docs/performance.md).

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

// ItemsFrom says where a table of items is. It is JSON, a list of objects of strings, numbers and booleans, or CSV
// whose first line has the variables' names.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMapKeyRef), has(self.jobRef), has(self.step)].filter(x, x).size() == 1",message="a table is in one place: write configMapKeyRef, jobRef or step"
// +kubebuilder:validation:XValidation:rule="has(self.step) == has(self.path)",message="step and path belong together: the path is that of the table, in the directory of the step's script"
type ItemsFrom struct {
	// ConfigMapKeyRef names a ConfigMap of the same namespace, and the key whose value is the table.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.key.contains('{')",fieldPath=".key",message="the key of a table must be letters, digits and - _ ."
	ConfigMapKeyRef KeyRef `json:"configMapKeyRef,omitzero"`

	// JobRef names a file that another HTCJob has brought back. Without proc that HTCJob has one job.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.path.contains('{{')",fieldPath=".path",message="the path of a table is the same for all jobs: leave out {{item.NAME}} and {{proc}}"
	// +kubebuilder:validation:XValidation:rule="!has(self.proc) || type(self.proc) == int",fieldPath=".proc",message="a table is one file: name one job by its number"
	JobRef *JobRef `json:"jobRef,omitempty"`

	// Step, for forEach of a workflow's step, is a step before that one, whose jobs write the table: the items are
	// known, and the jobs of this step sent, when the DAG of that one has ended. Where that step has several jobs, each
	// writes a table, and all their rows are taken.
	// +optional
	Step StepName `json:"step,omitempty"`

	// Path is where a job of that step leaves the table, relative to its script's directory.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.+=@%~:-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@%~:-]*)*$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(script|token|htcd-send|job[.]sh|job[.]sub|condor_exec[.]exe|tmp|var|_condor[^/]*)(/|$)')",message="script, token, htcd-send, job.sh, job.sub, condor_exec.exe, tmp, var and what begins with _condor are htcd's and HTCondor's: let the script write the table into another file"
	Path string `json:"path,omitempty"`
}

// String says where the table is.
func (f ItemsFrom) String() string {
	switch {
	case f.Step != "":
		return fmt.Sprintf("%s of the step %s", f.Path, f.Step)
	case f.JobRef != nil:
		return fmt.Sprintf("%s of the HTCJob %s", f.JobRef.Path, f.JobRef.Name)
	}
	return fmt.Sprintf("configmap %s, key %s", f.ConfigMapKeyRef.Name, f.ConfigMapKeyRef.Key)
}

// Parameter lists the values of one variable.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=10000
type Parameter []ItemValue
