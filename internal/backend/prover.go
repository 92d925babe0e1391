package backend

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// betweenProofs is how often the Secrets are looked at when none has changed. Most are answered by a ticket at hand.
	betweenProofs = time.Minute
	// afterProofs is how long one look is the last one, however often Secrets change.
	afterProofs = time.Second
)

// Prover finds out whether the credentials of accounts work. A run that is at the schedd needs its Secret again only when it ends
// or is deleted, perhaps in a week. So every Secret that is depended on is looked at when a Secret changes, and once in a while:
// those who mend it hear of it before it is needed. Its fields are set before its first use.
type Prover struct {
	Credentials Credentials
	// Accounts are those that somebody depends on.
	Accounts func() map[Account]struct{}
	// Turned hears of which accounts something new was found out.
	Turned func(map[Account]bool)

	mu    sync.Mutex
	found map[Account]*CredentialError // what was last found out: nil when they work
}

// Proof is what is known of an account.
type Proof struct {
	Known bool
	Err   *CredentialError
}

// Of returns what is known of an account.
func (p *Prover) Of(a Account) Proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	err, known := p.found[a]
	return Proof{known, err}
}

// replace takes down what was found out now, and returns the accounts of which that is news.
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

// Run looks at the accounts until ctx ends: at once when there is news.
func (p *Prover) Run(ctx context.Context, news <-chan struct{}) {
	tick := time.NewTicker(betweenProofs)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
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

// Prove asks for a ticket or a token of each account. That a Secret cannot be read counts only where settled is set: at the
// start it is not read yet.
func (p *Prover) Prove(ctx context.Context, settled bool) {
	found := map[Account]*CredentialError{}
	for a := range p.Accounts() {
		_, err := p.Credentials.Identity(ctx, Target{Account: a})
		e, is := errors.AsType[*CredentialError](err)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			found[a] = nil
		case is && (settled || e.Reason != reasonSecretUnreadable):
			found[a] = e
		default:
			if before := p.Of(a); before.Known {
				found[a] = before.Err
			}
		}
	}
	if turned := p.replace(found); len(turned) > 0 {
		p.Turned(turned)
	}
}
