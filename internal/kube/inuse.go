package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// A namespace's own Secret has our finalizer from before the first attempt that is sent with it until no HTCJob is left that
// was. Kubernetes deletes a namespace's objects in no order: without the finalizer the Secret is gone first, and the jobs,
// which only its account may remove, keep the HTCJobs, and so the namespace, from ever going.

const reasonSecretDeleting = "SecretBeingDeleted"

// secretUse keeps a Secret from being let go between the look at its finalizer and the intent of a run that needs it.
type secretUse struct {
	sync.RWMutex
	denied atomic.Bool // the rules of an earlier release do not let htcd patch Secrets; it was said
}

// mayBegin returns an error when the Secret of that target is being deleted. What has been sent with it, or perhaps, goes on.
func (c *Controller) mayBegin(t backend.Target) error {
	own, found := c.ownSecret(t)
	if !found || !own.Deleting {
		return nil
	}
	return &CredentialError{reasonSecretDeleting, fmt.Sprintf("secret %s/%s is being deleted: it is kept (finalizer %s) until the HTCJobs that were sent with it "+
		"are deleted, and nothing new is sent with it", own.Namespace, own.Name, v1alpha1.InUseFinalizer)}
}

// ownSecret is the Secret that runs of that target are sent with, unless it is the common one.
func (c *Controller) ownSecret(t backend.Target) (OwnSecret, bool) {
	own := c.Credentials.Own(t.Namespace)
	i := slices.IndexFunc(own, func(s OwnSecret) bool { return s.sends(t.Secret) })
	if i < 0 {
		return OwnSecret{}, false
	}
	return own[i], true
}

// holdSecret sees to the finalizer before a run is written down. Until leave is called, none is taken off.
func (c *Controller) holdSecret(ctx context.Context, t backend.Target) (leave func(), err error) {
	c.secretUse.RLock()
	if own, found := c.ownSecret(t); found && own.due(true) {
		err = c.allowed(c.Credentials.Hold(ctx, own), own)
	}
	if err != nil {
		c.secretUse.RUnlock()
		return nil, err
	}
	return c.secretUse.RUnlock, nil
}

// due reports whether the finalizer is to be put on the Secret, or taken off.
func (s OwnSecret) due(needed bool) bool {
	if needed {
		return !s.Held && !s.Deleting // Kubernetes lets nobody add one to what is being deleted
	}
	return s.Held
}

// allowed makes no error of an apiserver that does not let htcd patch the Secret: HTCJobs are more than their deletion.
func (c *Controller) allowed(err error, own OwnSecret) error {
	if err == nil {
		c.secretUse.denied.Store(false)
	}
	if !apierrors.IsForbidden(err) {
		return err
	}
	if !c.secretUse.denied.Swap(true) {
		c.Log.Warn().Err(err).Str("secret", own.Namespace+"/"+own.Name).
			Msg("the secrets of namespaces are not kept while HTCJobs need them: htcd may not patch them; apply deploy/components/namespace-secrets of this release")
	}
	return nil
}

// secretsOne is tendSecrets with its back-off.
func (c *Controller) secretsOne(ctx context.Context, namespace string) {
	err := c.tendSecrets(ctx, namespace)
	if err == nil {
		c.secrets.Forget(namespace)
		return
	}
	c.Log.Warn().Err(err).Str("namespace", namespace).Msg("whether its secrets are in use is not written, trying again")
	c.secrets.AddRateLimited(namespace)
}

// tendSecrets puts the finalizer on a namespace's Secrets, or takes it off, as they are needed now.
func (c *Controller) tendSecrets(ctx context.Context, namespace string) error {
	if len(c.Credentials.Own(namespace)) == 0 {
		return nil
	}
	c.secretUse.Lock()
	defer c.secretUse.Unlock()
	for _, own := range c.Credentials.Own(namespace) {
		needed, err := c.needsSecret(ctx, own)
		if err != nil {
			return err
		}
		switch {
		case !own.due(needed):
		case needed:
			err = c.allowed(c.Credentials.Hold(ctx, own), own)
		default:
			err = c.Credentials.LetGo(ctx, own)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// needsSecret reports whether anything was sent with the Secret by an HTCJob that is not gone. An HTCJob with our finalizer
// and without a row may have lost its rows with the ledger.
func (c *Controller) needsSecret(ctx context.Context, own OwnSecret) (needed bool, err error) {
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if needed, err = tx.SentWith(own.Namespace, own.Name, own.Usual); err != nil || needed {
			return err
		}
		needed, err = c.lostRuns(tx, own)
		return err
	})
	return needed, err
}

func (c *Controller) lostRuns(tx *ledger.Tx, own OwnSecret) (bool, error) {
	for _, object := range c.Informer.GetStore().List() {
		job := object.(*v1alpha1.HTCJob)
		named := ""
		if job.Spec.Pool != nil {
			named = job.Spec.Pool.SecretName
		}
		if job.Namespace != own.Namespace || !own.sends(named) || !slices.Contains(job.Finalizers, v1alpha1.Finalizer) {
			continue
		}
		runs, err := tx.Runs(ledger.RunFilter{Namespace: job.Namespace, Name: job.Name})
		if err != nil {
			return false, err
		}
		runs = slices.DeleteFunc(runs, func(run ledger.Run) bool { return run.UID != string(job.UID) })
		if forgotten(job, runs) {
			return true, nil
		}
	}
	return false, nil
}

// lookAtSecrets has the Secrets looked at of the namespace that an HTCJob has gone from.
func (c *Controller) lookAtSecrets(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	if namespace, _, err := cache.SplitMetaNamespaceKey(key); err == nil {
		c.secrets.Add(namespace)
	}
}
