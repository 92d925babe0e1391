package outputpush

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// betweenLooks is how often it is looked whether credentials with which something could not be pushed have changed.
const betweenLooks = 30 * time.Second

// logins remembers, by the key of its HTCJob, a digest of the credentials that a pass uses, until one has no failure. It is safe for
// concurrent use.
type logins struct {
	mu sync.Mutex
	m  map[string][sha256.Size]byte
}

func (l *logins) use(key string, digest [sha256.Size]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[string][sha256.Size]byte{}
	}
	l.m[key] = digest
}

func (l *logins) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, key)
}

func (l *logins) all() map[string][sha256.Size]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.m)
}

// credentials returns those of a run's HTCJob, and a digest of them, or of what is wrong with them.
func (p *Pusher) credentials(ctx context.Context, run ledger.Run) (configs [][]byte, digest [sha256.Size]byte, err error) {
	configs, err = p.Credentials(ctx, run)
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
		var run ledger.Run
		err := p.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) { run, err = newest(tx, key); return err })
		if err != nil {
			continue
		}
		_, now, err := p.credentials(ctx, run)
		if ctx.Err() != nil {
			return
		}
		if now != used && !errors.Is(err, ErrGone) {
			p.Queue.Forget(key)
			p.Queue.Add(key)
		}
	}
}
