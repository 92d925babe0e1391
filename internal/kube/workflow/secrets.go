package workflow

import (
	"context"
	"errors"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// SecretChanged has the accounts checked, and continues with what waits for credentials, or for a schedd that may not
// have let these in.
func (c *Controller) SecretChanged() {
	c.prover.SecretChanged()
	c.RetryAll(func(b reconciler.Blocker) bool {
		return b.Condition == v1alpha1.ConditionBackendReachable || b.Condition == v1alpha1.ConditionCredentials ||
			b.Reason == condor.NotAuthorised.String()
	})
}

// accountOf returns the account whose credentials a workflow is sent with.
func (c *Controller) accountOf(w *v1alpha1.HTCWorkflow) backend.Account {
	return c.pools.Presumed(asJob(w)).Account(asJob(w))
}

// dependedOn returns the accounts that open workflows depend on, as far as the site allows them.
func (c *Controller) dependedOn() map[backend.Account]struct{} {
	accounts := map[backend.Account]struct{}{}
	for _, w := range c.All() {
		if w.Status.Phase.Terminal() {
			continue
		}
		if t, err := c.pools.Presumed(asJob(w)).Target(asJob(w), c.Site.Policy); err == nil {
			accounts[t.Account] = struct{}{}
		}
	}
	return accounts
}

// accountsTurned queues every open workflow of the accounts whose credentials have news.
func (c *Controller) accountsTurned(turned map[backend.Account]bool) {
	c.Wake(func(w *v1alpha1.HTCWorkflow) bool { return !w.Status.Phase.Terminal() && turned[c.accountOf(w)] })
}

// needsSecret reports whether a workflow with our finalizer but without a row may have been sent with the Secret: the
// ledger may have lost its rows. The others are known from these, of both kinds.
func (c *Controller) needsSecret(ctx context.Context, own secrets.Own) (needed bool, err error) {
	if !c.Informer.HasSynced() {
		return false, errors.New("which HTCWorkflows there are is not known yet")
	}
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, w := range c.All() {
			if w.Namespace != own.Namespace || !slices.Contains(w.Finalizers, v1alpha1.Finalizer) ||
				!own.Sends(c.accountOf(w).Secret) {
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
