package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sent returns what of the spec an attempt is made of: changing anything else neither needs a new attempt nor disturbs
// the present one. The CRD's rule against edits names the same fields, optional ones
// in lists, as the apiserver would refuse a comparison of the bare optionals as too expensive.
func (s HTCJobSpec) Sent() HTCJobSpec {
	s.Suspend, s.TTLSecondsAfterFinished, s.ActiveDeadlineSeconds, s.LogsPod, s.Handover =
		false, nil, nil, false, Handover{}
	s.MaxFailures, s.OnMaxFailures = nil, ""
	s.Handling, s.Ports = Handling{}, nil
	s.ManagedBy = ""
	return s
}

// SpecHash tells one spec from another by what is sent.
func (j *HTCJob) SpecHash() string { return hash(j.Spec.Sent()) }

func hash(sent any) string {
	text, err := json.Marshal(sent)
	if err != nil {
		panic(fmt.Sprintf("a spec cannot be written as JSON: %v", err)) // no value of the type can do that
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Rerun returns the value of the annotation that asks for one more attempt; see MaxRerun.
func (j *HTCJob) Rerun() string { return rerun(j.Annotations) }

// MaxRerun is how many bytes of the annotation go into the status. Of a longer value that is its beginning, which ends
// with a hash of the whole: another value is another one all the same.
const MaxRerun = 256

func rerun(annotations map[string]string) string {
	value := annotations[RerunAnnotation]
	if len(value) <= MaxRerun {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	end := fmt.Sprintf("... (%d bytes, sha256 %x)", len(value), sum)
	return strings.ToValidUTF8(value[:MaxRerun-len(end)], "") + end
}

// RerunProcs returns the value of the annotation that says which jobs run again.
func (j *HTCJob) RerunProcs() string { return j.Annotations[RerunProcsAnnotation] }

// CancelProcs returns the value of the annotation that says which jobs of an attempt are to be removed.
func (j *HTCJob) CancelProcs() string { return j.Annotations[CancelProcsAnnotation] }

// RerunRefusal says that the two annotations cannot be followed, and why.
func (j *HTCJob) RerunRefusal(why string) string {
	return fmt.Sprintf("nothing runs again, as asked for with the annotations %s %.40q and %s %.40q: %s",
		RerunAnnotation, j.Rerun(), RerunProcsAnnotation, j.RerunProcs(), why)
}

// RerunRefused reports whether the status says that these two annotations cannot be followed: the HTCJob stays as it
// is.
func (j *HTCJob) RerunRefused() bool {
	for _, c := range j.Status.Conditions {
		if c.Type == ConditionRerunRefused && c.Status == metav1.ConditionTrue {
			return strings.HasPrefix(c.Message, j.RerunRefusal(""))
		}
	}
	return false
}

// Sent returns what of the spec an attempt is made of, as that of an HTCJob does.
func (s HTCWorkflowSpec) Sent() HTCWorkflowSpec {
	s.Suspend, s.TTLSecondsAfterFinished, s.ActiveDeadlineSeconds, s.Resume, s.KeepArtifacts = false, nil, nil, "", false
	s.Ports, s.Handover, s.ManagedBy = nil, Handover{}, ""
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		s.Steps[i].Job.Landing = nil
	}
	if s.Finally != nil {
		f := *s.Finally
		f.Job.Landing = nil
		s.Finally = &f
	}
	return s
}

// SpecHash tells one spec from another by what is sent.
func (w *HTCWorkflow) SpecHash() string { return hash(w.Spec.Sent()) }

// Rerun returns the value of the annotation that asks for one more attempt, as that of an HTCJob does.
func (w *HTCWorkflow) Rerun() string { return rerun(w.Annotations) }
