package workflow

import (
	"context"
	"errors"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// needsSecret reports whether a workflow with our finalizer but without a row may have been sent with the Secret: the
// ledger may have lost its rows. The others are known from these, of both kinds.
func (c *Controller) needsSecret(ctx context.Context, own secrets.Own) (needed bool, err error) {
	if !c.Informer.HasSynced() {
		return false, errors.New("which HTCWorkflows there are is not known yet")
	}
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, w := range c.All() {
			if w.Namespace != own.Namespace || !slices.Contains(w.Finalizers, v1alpha1.Finalizer) ||
				!own.Sends(c.pools.Presumed(asJob(w)).Account(asJob(w)).Secret) {
				continue
			}
			runs, err := tx.Runs(ledger.RunFilter{Kind: ledger.Workflows, Namespace: w.Namespace, Name: w.Name})
			if err != nil {
				return err
			}
			if needed = !slices.ContainsFunc(
				runs,
				func(run ledger.Run) bool { return run.UID == string(w.UID) },
			); needed {
				return nil
			}
		}
		return nil
	})
	return needed, err
}
