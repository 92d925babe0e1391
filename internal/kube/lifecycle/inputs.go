package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// ReasonInputFailed is the reason when an HTCJob has failed because one whose output it needs has failed, or has not
// left the file.
const ReasonInputFailed = "InputFailed"

// inputsCondition says whether what spec.inputs, spec.itemsFrom and spec.credentials name is there. An HTCJob without
// them, or with URLs alone, has no such condition; one with credentials alone has it once one was missing.
func inputsCondition(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation, v View) {
	const kind = v1alpha1.ConditionInputsReady
	spec, run := s.Job.Spec, s.Run
	read := spec.Brings() || spec.ItemsFrom != nil
	switch {
	case v.BlockedBy(kind):
		set(kind, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
	case !read && len(spec.Credentials) == 0 && (run == nil || run.InputsDigest+run.ItemsDigest == ""):
		meta.RemoveStatusCondition(&status.Conditions, kind)
	case run != nil && run.State == ledger.Refused &&
		(run.Reason == ReasonInputFailed || meta.IsStatusConditionFalse(status.Conditions, kind)):
		set(kind, metav1.ConditionFalse, run.Reason, run.Message)
	case run != nil && run.InputsDigest != "":
		set(kind, metav1.ConditionTrue, "Read", "the inputs have been read; their digest is "+run.InputsDigest)
	case run != nil && run.ItemsDigest != "":
		set(kind, metav1.ConditionTrue, "Read", "the table of itemsFrom has been read; its digest is "+run.ItemsDigest)
	case !read && meta.IsStatusConditionFalse(status.Conditions, kind):
		set(kind, metav1.ConditionTrue, "Found", "the credentials are there")
	case v.Blocker != nil && meta.FindStatusCondition(status.Conditions, kind) != nil:
		set(kind, metav1.ConditionTrue, "Found", "every source is there; it is read when the jobs are sent")
	}
}
