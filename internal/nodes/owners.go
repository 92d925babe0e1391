package nodes

import (
	"context"
	"slices"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/schedd"
)

// Anyone who may submit to the schedd can write the tag of a node into their own job, but not its Owner.

// accountLife is how long the accounts of a target are not asked for again.
const accountLife = 10 * time.Minute

// owners remembers the accounts of targets. The zero value is ready to use.
type owners struct {
	mu sync.Mutex
	of map[backend.Target]known
}

type known struct {
	accounts []string
	until    time.Time
}

// dropForeign forgets what jobs said that htcd's accounts do not own.
func (o *owners) dropForeign(ctx context.Context, c *Checker, id schedd.Identity, k *comparison, at time.Time) error {
	if len(k.heard) == 0 {
		return nil
	}
	accounts, err := o.get(ctx, c, backend.TargetOf(k.run), id, at)
	if err != nil {
		return err
	}
	for number, words := range k.heard {
		k.heard[number] = slices.DeleteFunc(words, func(w word) bool { return !slices.Contains(accounts, w.owner) })
	}
	return nil
}

func (o *owners) get(ctx context.Context, c *Checker, t backend.Target, id schedd.Identity, at time.Time) ([]string, error) {
	o.mu.Lock()
	of, found := o.of[t]
	o.mu.Unlock()
	if found && at.Before(of.until) {
		return of.accounts, nil
	}
	accounts, err := c.Accounts(ctx, t, id)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[backend.Target]known{}
	}
	o.of[t] = known{accounts, at.Add(accountLife)}
	return accounts, nil
}
