package job

import (
	"context"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// SecretChanged triggers a check of the Secrets and wakes every HTCJob that waits for credentials or whose account is
// not authorised.
func (c *Controller) SecretChanged(namespace string) {
	c.SecretTouched(namespace)
	c.prover.SecretChanged()
	c.retryNow(func(t reconciler.Blocker) bool {
		return t.Condition == v1alpha1.ConditionCredentials || t.Reason == condor.NotAuthorised.String()
	})
}

// SecretTouched queues a check whether the Secrets of a namespace are in use: one may be about to be deleted.
func (c *Controller) SecretTouched(namespace string) { c.secrets.Add(namespace) }

// dependedOn returns the accounts that open HTCJobs depend on, as far as the site allows them. The common one is
// included unless namespaces may have their own accounts: then perhaps none needs it.
func (c *Controller) dependedOn() map[backend.Account]struct{} {
	accounts := map[backend.Account]struct{}{}
	if len(c.Site.PoolSecrets) == 0 {
		accounts[backend.Account{}] = struct{}{}
	}
	for _, job := range c.All() {
		if job.Status.Phase.Terminal() {
			continue
		}
		if t, err := c.pools.Presumed(job).Target(job, c.Site.Policy); err == nil {
			accounts[t.Account] = struct{}{}
		}
	}
	return accounts
}

// accountsTurned queues every open HTCJob of the accounts whose credentials have news.
func (c *Controller) accountsTurned(turned map[backend.Account]bool) {
	c.Wake(func(job *v1alpha1.HTCJob) bool { return !job.Status.Phase.Terminal() && turned[c.accountOf(job)] })
}

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
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if needed, err = tx.SentWith(own.Namespace, own.Name, own.Usual); err != nil || needed {
			return err
		}
		needed, err = c.lostRuns(tx, own)
		return err
	})
	return needed, err
}

func (c *Controller) lostRuns(tx *ledger.Tx, own secrets.Own) (bool, error) {
	for _, job := range c.All() {
		if job.Namespace != own.Namespace || !own.Sends(c.accountOf(job).Secret) ||
			!slices.Contains(job.Finalizers, v1alpha1.Finalizer) {
			continue
		}
		runs, err := tx.Runs(ledger.RunFilter{Namespace: job.Namespace, Name: job.Name})
		if err != nil {
			return false, err
		}
		runs = slices.DeleteFunc(runs, func(run ledger.Run) bool { return run.UID != string(job.UID) })
		if c.forgotten(job, runs) {
			return true, nil
		}
	}
	return false, nil
}

// secretsDenied tells the administrator what the RBAC rules of an earlier release do not allow.
func (c *Controller) secretsDenied(own secrets.Own, err error) {
	c.Log.Warn().Err(err).Str("secret", own.Namespace+"/"+own.Name).
		Msg(
			"the secrets of namespaces are not kept while HTCJobs need them: htcd may not patch them; apply deploy/components/namespace-secrets of this release",
		)
}
