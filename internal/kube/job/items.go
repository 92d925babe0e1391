package job

import (
	"context"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
)

// pointsOf returns the items of an attempt. A table is read once: for an attempt whose intent is in the ledger, given
// as run, the items are those that were recorded with it.
func (c *Controller) pointsOf(ctx context.Context, job *v1alpha1.HTCJob, run *ledger.Run) (site.Items, error) {
	if job.Spec.ItemsFrom != nil && run != nil && run.SpecHash == job.SpecHash() && run.ItemsDigest != "" {
		p := site.Items{Digest: run.ItemsDigest}
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
			p.Each, err = tx.Items(run.UID, run.Attempt)
			return err
		})
		if err != nil || len(p.Each) > 0 {
			return p, err
		}
	}
	b := inputs.Bringer{ConfigMaps: c.ConfigMaps, Jobs: inputJobs{c}, Store: c.Output}
	if job.Spec.ItemsFrom == nil || job.Spec.ItemsFrom.JobRef == nil {
		return site.ReadItems(ctx, job, b)
	}
	c.awaitSources(job)
	p, err := site.ReadItems(ctx, job, b)
	if err == nil {
		c.waiters.Forget(job.Namespace + "/" + job.Name)
	}
	return p, err
}

// insertParts records what belongs to a run beside its row.
func insertParts(tx *ledger.Tx, job *v1alpha1.HTCJob, run ledger.Run, packed ledger.Items) error {
	if err := tx.SetItems(run.UID, run.Attempt, packed); err != nil {
		return err
	}
	return tx.SetDestinations(run.UID, run.Attempt, site.Destinations(job, run.Attempt))
}

// recallParts records it again after the ledger had lost it, as far as the spec and the status still say it.
func recallParts(tx *ledger.Tx, job *v1alpha1.HTCJob, run ledger.Run) error {
	if run.SpecHash != job.SpecHash() {
		return nil
	}
	if err := recallWritten(tx, job, run); err != nil {
		return err
	}
	all, err := site.InlineItems(job)
	if err != nil || len(all) != run.All() {
		return nil // nothing to recall: then the jobs are named by their ids alone
	}
	return tx.SetItems(run.UID, run.Attempt, ledger.PackItems(all))
}

// nameItems finds the items of the jobs that a status names.
func nameItems(tx *ledger.Tx, s *lifecycle.Situation) error {
	named := s.Failures
	if s.Held != nil {
		named = append(named[:len(named):len(named)], *s.Held)
	}
	for _, p := range named {
		item, err := tx.Item(p.UID, p.Attempt, p.Proc)
		if err != nil {
			return err
		}
		if item == "" {
			return nil // none of them has one
		}
		if s.Items == nil {
			s.Items = map[int]string{}
		}
		s.Items[p.Proc] = items.Label(item)
	}
	return nil
}
