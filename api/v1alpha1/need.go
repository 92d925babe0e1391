package v1alpha1

import (
	"bytes"
	"encoding/json"
)

// Need is a step that another needs. It is written as the step's name alone, or as an object. A CRD has no type for
// both, so the apiserver takes anything, and htcd refuses what is neither.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XPreserveUnknownFields
type Need struct {
	Step  StepName `json:"-"` // the one that must have succeeded before
	By    []string `json:"-"` // the variables that pair the jobs of both steps; none: every job needs all of them
	Any   bool     `json:"-"` // its jobs must only have ended, or be futile, and need not have succeeded
	Wrong string   `json:"-"` // what was written, if it is neither
}

// needObject is a Need that is written as an object.
type needObject struct {
	Step    StepName `json:"step"`
	By      []string `json:"by,omitempty"`
	Outcome Outcome  `json:"outcome,omitempty"`
}

// Outcome is how something must have ended that comes before.
//
// +kubebuilder:validation:Enum=Succeeded;Any
type Outcome string

// The outcomes.
const (
	OutcomeSucceeded Outcome = "Succeeded" // when absent
	OutcomeAny       Outcome = "Any"       // it has ended, or is futile
)

// MarshalJSON writes it as shortly as it can be.
func (n Need) MarshalJSON() ([]byte, error) {
	switch {
	case n.Wrong != "":
		return []byte(n.Wrong), nil
	case n.Any:
		return json.Marshal(needObject{n.Step, n.By, OutcomeAny})
	case len(n.By) == 0:
		return json.Marshal(n.Step)
	}
	return json.Marshal(needObject{Step: n.Step, By: n.By})
}

// UnmarshalJSON accepts everything: one object that cannot be read would keep all others from being seen.
func (n *Need) UnmarshalJSON(text []byte) error {
	*n = Need{}
	if json.Unmarshal(text, &n.Step) == nil && n.Step != "" {
		return nil
	}
	var o needObject
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil || o.Step == "" || !o.Outcome.Known() {
		*n = Need{Wrong: string(text)}
	} else {
		*n = Need{Step: o.Step, By: o.By, Any: o.Outcome == OutcomeAny}
	}
	return nil
}

// Known reports whether it is absent, or one of the outcomes.
func (o Outcome) Known() bool { return o == "" || o == OutcomeSucceeded || o == OutcomeAny }
