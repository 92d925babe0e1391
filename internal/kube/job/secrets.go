package job

import (
	"context"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// SecretChanged triggers a check of the Secrets and wakes every HTCJob that waits for credentials or whose account is
// not authorised.
func (c *Controller) SecretChanged(namespace string) {
	c.SecretTouched(namespace)
	c.Prover.SecretChanged()
	c.retryNow(func(t reconciler.Blocker) bool {
		return t.Condition == v1alpha1.ConditionCredentials || t.Reason == condor.NotAuthorised.String()
	})
}

// SecretTouched queues a check whether the Secrets of a namespace are in use: one may be about to be deleted.
func (c *Controller) SecretTouched(namespace string) { c.secrets.Add(namespace) }

// secretsOne adds our finalizer to a namespace's Secrets or removes it, with a back-off.
func (c *Controller) secretsOne(ctx context.Context, namespace string) {
	err := c.keeper.Tend(ctx, namespace)
	if err == nil {
		c.secrets.Forget(namespace)
		return
	}
	c.Log.Warn().Err(err).Str("namespace", namespace).Msg("whether its secrets are in use is not written, trying again")
	c.secrets.AddRateLimited(namespace)
}

// needsSecret reports whether an HTCJob that still exists sent anything with the Secret. An HTCJob with our finalizer
// but without a row may have lost its rows with the ledger.
func (c *Controller) needsSecret(ctx context.Context, own secrets.Own) (needed bool, err error) {
	return ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (bool, error) {
		if sent, err := tx.SentWith(own.Namespace, own.Name, own.Usual); err != nil || sent {
			return sent, err
		}
		return c.LostWith(tx, own, c.forgotten)
	})
}

// secretsDenied tells the administrator what the RBAC rules of an earlier release do not allow.
func (c *Controller) secretsDenied(own secrets.Own, err error) {
	c.Log.Warn().Err(err).Str("secret", own.Namespace+"/"+own.Name).
		Msg(
			"the secrets of namespaces are not kept while HTCJobs need them: htcd may not patch them; apply deploy/components/namespace-secrets of this release",
		)
}
