package site

import (
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// checkSuccessPolicy refuses rules that so many jobs can never meet.
func checkSuccessPolicy(p *v1alpha1.SuccessPolicy, jobs int) error {
	if p == nil {
		return nil
	}
	for i, rule := range p.Rules {
		among := jobs
		if rule.SucceededIndexes != "" {
			set, err := procset.Parse(rule.SucceededIndexes, jobs)
			if err != nil {
				return condor.Refusal("successPolicy.rules[%d].succeededIndexes: %w", i, err)
			}
			among = set.Len()
		}
		if n := rule.SucceededCount; n != nil && int(*n) > among {
			return condor.Refusal(
				"successPolicy.rules[%d].succeededCount %d is more than the %d jobs that the rule is about",
				i,
				*n,
				among,
			)
		}
	}
	return nil
}
