package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Sent returns what of the spec an attempt is made of: changing anything else neither needs a new attempt nor disturbs
// the present one. The CRD's rule against edits names the same fields, optional ones
// in lists, as the apiserver would refuse a comparison of the bare optionals as too expensive.
func (s HTCJobSpec) Sent() HTCJobSpec {
	s.Suspend, s.TTLSecondsAfterFinished, s.ActiveDeadlineSeconds, s.LogsPod = false, nil, nil, false
	return s
}

// SpecHash tells one spec from another by what is sent.
func (j *HTCJob) SpecHash() string {
	text, err := json.Marshal(j.Spec.Sent())
	if err != nil {
		panic(fmt.Sprintf("a spec cannot be written as JSON: %v", err)) // no value of the type can do that
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Rerun returns the value of the annotation that asks for one more attempt.
func (j *HTCJob) Rerun() string { return j.Annotations[RerunAnnotation] }
