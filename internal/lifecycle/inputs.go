package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// ReasonInputFailed is the reason when an HTCJob has failed because one whose output it needs has failed, or has not left the
// file.
const ReasonInputFailed = "InputFailed"

// inputsCondition says whether what spec.inputs names has been read. An HTCJob without inputs has no such condition.
func inputsCondition(set setCondition, status *v1alpha1.HTCJobStatus, s Situation, v View) {
	const kind = v1alpha1.ConditionInputsReady
	run := s.Run
	switch {
	case len(s.Job.Spec.Inputs) == 0 && (run == nil || run.InputsDigest == ""):
		meta.RemoveStatusCondition(&status.Conditions, kind)
	case v.blockedBy(kind):
		set(kind, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
	case run != nil && run.State == ledger.Refused && run.Reason == ReasonInputFailed:
		set(kind, metav1.ConditionFalse, run.Reason, run.Message)
	case run != nil && run.InputsDigest != "":
		set(kind, metav1.ConditionTrue, "Read", "the inputs have been read; their digest is "+run.InputsDigest)
	case v.Blocker != nil && meta.FindStatusCondition(status.Conditions, kind) != nil:
		set(kind, metav1.ConditionTrue, "Found", "every source is there; it is read when the jobs are sent")
	}
}
