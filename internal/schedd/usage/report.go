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

// Step is what the nodes of one step have used so far.
type Step struct {
	Step string `json:"step"`
	Report
	// Nodes has the places of the nodes that used most, by their numbers: SEQUENCE/INDEX, or the name in spec.graph.
	Nodes map[int32]string `json:"nodes,omitempty"`
}

// Each lists what is known of cpu, memory and disk.
func (r Report) Each() (all []Resource) {
	if r.Usage == nil {
		return nil
	}
	for _, of := range []Resource{{"cpu", r.CPU}, {"memory", r.Memory}, {"disk", r.Disk}} {
		if of.Used != nil {
			all = append(all, of)
		}
	}
	return all
}

// Resource is how much of a resource was used.
type Resource struct {
	Name string
	*v1alpha1.Used
}
