package lifecycle

import (
	"encoding/json"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// used returns what the jobs of an attempt used, nil until HTCondor has confirmed all ends.
func used(s Situation) *v1alpha1.Usage {
	var u v1alpha1.Usage
	if s.Counts.Active > 0 || !s.Run.Confirmed || json.Unmarshal([]byte(s.Run.Usage), &u) != nil {
		return nil
	}
	return &u
}

// WriteUsage returns the form in which the ledger keeps it.
func WriteUsage(u *v1alpha1.Usage) string {
	if u == nil {
		return ""
	}
	text, err := json.Marshal(u)
	if err != nil {
		return ""
	}
	return string(text)
}
