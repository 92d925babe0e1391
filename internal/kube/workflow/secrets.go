package workflow

import (
	"context"
	"errors"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// SecretChanged has the accounts checked, and continues with what waits for credentials, or for a schedd that may not
// have let these in.
func (c *Controller) SecretChanged() {
	c.Prover.SecretChanged()
	c.RetryAll(func(b reconciler.Blocker) bool {
		return b.Condition == v1alpha1.ConditionBackendReachable || b.Condition == v1alpha1.ConditionCredentials ||
			b.Reason == condor.NotAuthorised.String()
	})
}

// needsSecret reports whether a workflow with our finalizer but without a row may have been sent with the Secret: the
// ledger may have lost its rows. The others are known from these, of both kinds.
func (c *Controller) needsSecret(ctx context.Context, own secrets.Own) (needed bool, err error) {
	if !c.Informer.HasSynced() {
		return false, errors.New("which HTCWorkflows there are is not known yet")
	}
	unknown := func(_ *v1alpha1.HTCWorkflow, runs []ledger.Run) bool { return len(runs) == 0 }
	return ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (bool, error) { return c.LostWith(tx, own, unknown) })
}
