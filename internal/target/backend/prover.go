package backend

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// betweenProofs is how often the Secrets are checked when none has changed. Most checks find a valid ticket.
	betweenProofs = time.Minute
	// afterProofs is the minimum time between two checks, however often Secrets change.
	afterProofs = time.Second
	// provedAtOnce is for silent KDCs: each account waits a quarter of a minute for its one.
	provedAtOnce = 8
)

// Prover finds out whether accounts' credentials work. A run at the schedd needs its Secret again only when it ends or
// is deleted, perhaps a week later. So every Secret in use is checked when a Secret changes, and at intervals, so that
// users can repair it before it is needed. Set its fields before its first use.
type Prover struct {
	Credentials Credentials
	// Accounts returns the accounts in use.
	Accounts func() map[Account]struct{}
	// Turned receives the accounts whose result has changed.
	Turned func(map[Account]bool)
	// News is of capacity 1.
	News chan struct{}

	mu    sync.Mutex
	found map[Account]*CredentialError // the last result; nil if they work
}

// Proof is what is known of an account.
type Proof struct {
	Known bool
	Err   *CredentialError
}

// Of returns what is known about an account.
func (p *Prover) Of(a Account) Proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	err, known := p.found[a]
	return Proof{known, err}
}

// replace records the new results and returns the accounts whose result has changed.
func (p *Prover) replace(found map[Account]*CredentialError) (turned map[Account]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	turned = map[Account]bool{}
	for a, now := range found {
		if before, known := p.found[a]; !known || !sameWords(before, now) {
			turned[a] = true
		}
	}
	p.found = found
	return turned
}

func sameWords(a, b *CredentialError) bool { return a == b || a != nil && b != nil && *a == *b }

// SecretChanged has the accounts checked soon.
func (p *Prover) SecretChanged() {
	select {
	case p.News <- struct{}{}:
	default: // a check is already pending
	}
}

// Run checks the accounts until ctx ends, immediately when there is news.
func (p *Prover) Run(ctx context.Context) {
	tick := time.NewTicker(betweenProofs)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.News:
			p.Prove(ctx, false)
		case <-tick.C:
			p.Prove(ctx, true)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(afterProofs):
		}
	}
}

// Prove requests a ticket or a token for each account. An unreadable Secret counts only if settled is set: at the start
// it has not been read yet.
func (p *Prover) Prove(ctx context.Context, settled bool) {
	var mu sync.Mutex
	found := map[Account]*CredentialError{}
	var proving errgroup.Group
	proving.SetLimit(provedAtOnce)
	for a := range p.Accounts() {
		proving.Go(func() error {
			_, err := p.Credentials.Identity(ctx, Target{Account: a})
			e, is := errors.AsType[*CredentialError](err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				found[a] = nil
			case is && (settled || e.Reason != reasonSecretUnreadable):
				found[a] = e
			default:
				if before := p.Of(a); before.Known {
					found[a] = before.Err
				}
			}
			return ctx.Err()
		})
	}
	if proving.Wait() != nil {
		return
	}
	if turned := p.replace(found); len(turned) > 0 {
		p.Turned(turned)
	}
}
