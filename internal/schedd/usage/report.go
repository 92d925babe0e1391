package usage

import (
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Report is what the jobs of an attempt have used so far.
type Report struct {
	Attempt int `json:"attempt"`
	Jobs    int `json:"jobs"`    // of the attempt
	Ended   int `json:"ended"`   // as HTCondor has confirmed
	Running int `json:"running"` // or otherwise on, and started before

	// Asked is when HTCondor was asked about those that have not ended; absent if it was not.
	Asked *time.Time `json:"asked,omitempty"`
	// Unknown says why nothing is known about those.
	Unknown string `json:"unknown,omitempty"`

	*v1alpha1.Usage `json:"usage,omitempty"` // absent: none has started
}
