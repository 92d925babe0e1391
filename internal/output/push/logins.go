package push

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// betweenLooks is how often it is looked whether credentials with which something could not be pushed have changed.
const betweenLooks = 30 * time.Second

// logins remembers, by the key of its HTCJob, a digest of the credentials that a pass uses, until one has no failure.
// It is safe for concurrent use.
type logins struct {
	mu sync.Mutex
	m  map[string]login
}

// login is a digest of the credentials with which an item was pushed, or tried to be.
type login struct {
	item   Item
	digest [sha256.Size]byte
}

func (l *logins) use(key string, with login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[string]login{}
	}
	l.m[key] = with
}

func (l *logins) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, key)
}

func (l *logins) all() map[string]login {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.m)
}

// credentials returns those for an item, and a digest of them, or of what is wrong with them.
func (p *Pusher) credentials(ctx context.Context, item Item) (configs [][]byte, digest [sha256.Size]byte, err error) {
	configs, err = p.Credentials(ctx, item)
	hash := sha256.New()
	for _, c := range configs {
		fmt.Fprintf(hash, "%d:%s", len(c), c)
	}
	if err != nil {
		fmt.Fprint(hash, err)
	}
	return configs, [sha256.Size]byte(hash.Sum(nil)), err
}

func (p *Pusher) lookOften(ctx context.Context) {
	tick := time.NewTicker(betweenLooks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.look(ctx)
		}
	}
}

// look ends the back-off of those whose credentials have changed.
func (p *Pusher) look(ctx context.Context) {
	for key, used := range p.logins.all() {
		_, now, err := p.credentials(ctx, used.item)
		if ctx.Err() != nil {
			return
		}
		if now != used.digest && !errors.Is(err, ErrGone) {
			p.Queue.Forget(key)
			p.Queue.Add(key)
		}
	}
}
