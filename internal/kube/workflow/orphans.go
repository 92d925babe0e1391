package workflow

import (
	"context"
	"errors"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/ledger"
)

// Reconcile compares the DAGs in a scope, and then their nodes, with HTCondor, reports what differs, and repairs the
// ledger unless it is a dry run; their statuses follow. checked is how many jobs were compared.
func (c *Controller) Reconcile(
	ctx context.Context,
	s orphans.Scope,
	found func(crosscheck.Difference),
) (checked int, err error) {
	sent := func(tx *ledger.Tx) ([]ledger.Run, error) {
		return tx.Runs(
			ledger.RunFilter{Kind: ledger.Workflows, Namespace: s.Namespace, Name: s.Name, State: ledger.Submitted},
		)
	}
	runs, err := ledger.Get(ctx, c.Ledger, sent)
	if err != nil {
		return 0, err
	}
	checked, failed := c.dags.Reconcile(ctx, runs, s.DryRun, found)
	if runs, err = ledger.Get(ctx, c.Ledger, sent); err != nil { // whether one has ended may have just been learned
		return checked, errors.Join(failed, err)
	}
	more, err := c.nodes.Reconcile(ctx, runs, s.DryRun, found)
	return checked + more, errors.Join(failed, err)
}
