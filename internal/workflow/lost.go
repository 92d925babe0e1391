package workflow

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// recoverLost begins a workflow that has our finalizer but no row: htcd ended between the two, or the ledger was lost. As long as the
// schedd has a DAG of it nothing is sent in addition.
func (c *Controller) recoverLost(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation) error {
	p, err := c.pools.New(asJob(w))
	if err != nil {
		return err
	}
	t, id, err := c.choose(ctx, w, p)
	if err != nil {
		return err
	}
	found, err := c.sender.Search(ctx, t, id, schedd.UIDConstraint(string(w.UID)), "")
	if err != nil {
		return fmt.Errorf("look for lost DAGs: %w", err)
	}
	if n := found.Newest(); n > 0 || len(found.Others) > 0 {
		return fmt.Errorf("htcd's ledger has lost this HTCWorkflow, and the schedd still has its DAG %d: delete it, which removes its jobs, and apply it again", n)
	}
	if err := c.sender.Missing(ledger.Run{UID: string(w.UID)}, c.Now()); err != nil {
		return err
	}
	c.absences.Clear(string(w.UID))
	return c.submit(ctx, w, s, Decision{Action: Submit, Again: true})
}
