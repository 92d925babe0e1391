package site

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// Items are what an attempt makes of spec.items, spec.itemsFrom or spec.parameters.
type Items struct {
	Each   []string // the variables of each job; none if a number alone says how many there are
	Digest string   // of the table that they are from; empty: from none
}

// ReadItems reads the items that a spec has itself, or names.
func ReadItems(ctx context.Context, job *v1alpha1.HTCJob, tables inputs.Bringer) (Items, error) {
	from := job.Spec.ItemsFrom
	if from == nil {
		all, err := InlineItems(job)
		return Items{Each: all}, err
	}
	text, digest, err := tables.Table(ctx, job, *from)
	if err != nil {
		return Items{}, err
	}
	all, err := items.Table(text, items.Most, submit.CheckVariable)
	if err != nil {
		return Items{}, condor.Refusal("spec.itemsFrom: %s: %w", from, err)
	}
	return Items{all, digest}, nil
}

// InlineItems returns the items of a spec that has them itself.
func InlineItems(job *v1alpha1.HTCJob) (all []string, err error) {
	switch {
	case len(job.Spec.Items) > 0:
		if all, err = items.List(job.Spec.Items, submit.CheckVariable); err != nil {
			err = fmt.Errorf("spec.%w", err)
		}
	case len(job.Spec.Parameters) > 0:
		all, err = items.Product(job.Spec.Parameters, submit.CheckVariable)
	}
	if err != nil {
		return nil, condor.Refusal("%w", err)
	}
	return all, nil
}
