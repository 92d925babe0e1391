package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// A run that is at the schedd needs its Secret again only when it ends or is deleted, perhaps in a week. So every Secret that
// HTCJobs depend on is looked at when a Secret changes, and once in a while: those who mend it hear of it before it is needed.

const (
	// betweenProofs is how often the Secrets are looked at when none has changed. Most are answered by a ticket at hand.
	betweenProofs = time.Minute
	// afterProofs is how long one look is the last one, however often Secrets change.
	afterProofs = time.Second
)

// account is whose credentials HTCJobs are sent with: those of a Secret that they name, else the usual ones of their namespace.
// The one without a namespace is the common one.
type account struct{ namespace, secret string }

// proven is what was last found out about the credentials of each account: nil when they work.
type proven struct {
	mu sync.Mutex
	m  map[account]*CredentialError
}

// proof is what is known of an account.
type proof struct {
	known bool
	err   *CredentialError
}

func (p *proven) get(of account) proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	err, known := p.m[of]
	return proof{known, err}
}

// replace takes down what was found out now, and returns the accounts of which that is news.
func (p *proven) replace(found map[account]*CredentialError) (turned map[account]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	turned = map[account]bool{}
	for a, now := range found {
		if before, known := p.m[a]; !known || !sameWords(before, now) {
			turned[a] = true
		}
	}
	p.m = found
	return turned
}

func sameWords(a, b *CredentialError) bool { return a == b || a != nil && b != nil && *a == *b }

// accountOf is whose credentials an HTCJob is sent with.
func accountOf(job *v1alpha1.HTCJob) account {
	a := account{namespace: job.Namespace}
	if job.Spec.Pool != nil {
		a.secret = job.Spec.Pool.SecretName
	}
	return a
}

// proving looks at the Secrets until ctx ends.
func (c *Controller) proving(ctx context.Context) {
	tick := time.NewTicker(betweenProofs)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.secretNews:
			c.prove(ctx, false)
		case <-tick.C:
			c.prove(ctx, true)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(afterProofs):
		}
	}
}

// prove asks for a ticket or a token of each account that an open HTCJob depends on. That a Secret cannot be read counts only
// where settled is set: at the start it is not read yet.
func (c *Controller) prove(ctx context.Context, settled bool) {
	found := map[account]*CredentialError{}
	for a := range c.dependedOn() {
		_, err := c.Credentials.Identity(ctx, a.namespace, a.secret)
		e, is := errors.AsType[*CredentialError](err)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			found[a] = nil
		case is && (settled || e.Reason != reasonSecretUnreadable):
			found[a] = e
		default:
			if before := c.proven.get(a); before.known {
				found[a] = before.err
			}
		}
	}
	turned := c.proven.replace(found)
	if len(turned) == 0 {
		return
	}
	for _, object := range c.Informer.GetStore().List() {
		if job := object.(*v1alpha1.HTCJob); !job.Status.Phase.Terminal() && turned[accountOf(job)] {
			c.routine.Add(job.Namespace + "/" + job.Name)
		}
	}
}

// dependedOn are the accounts that HTCJobs depend on, as far as the site allows them. The common one is among them unless
// namespaces may have accounts of their own, and perhaps all have.
func (c *Controller) dependedOn() map[account]struct{} {
	accounts := map[account]struct{}{}
	if len(c.Site.PoolSecrets) == 0 {
		accounts[account{}] = struct{}{}
	}
	for _, object := range c.Informer.GetStore().List() {
		job := object.(*v1alpha1.HTCJob)
		if job.Status.Phase.Terminal() {
			continue
		}
		if _, err := c.Site.target(job); err == nil {
			accounts[accountOf(job)] = struct{}{}
		}
	}
	return accounts
}
