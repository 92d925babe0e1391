package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Anyone who may submit to the schedd can write the tag of a node into their own job, but not its Owner. DAGMan sends
// its nodes as the account of its own job, which its row tells once HTCondor has shown that job. Until then they may
// have the accounts of its target.

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

// owned returns those of the DAGs of which it is known whose their jobs are, and notes these accounts in l. The others
// wait, and they alone: the credentials of one namespace are no other's concern.
func (c *Checker) owned(ctx context.Context, runs []ledger.Run, l *look) (known []ledger.Run) {
	if l.accounts == nil {
		l.accounts = make(map[key][]string, len(runs))
	}
	failed := map[backend.Target]bool{}
	for _, run := range runs {
		if run.Account != "" {
			l.accounts[keyOf(run)] = []string{run.Account}
			known = append(known, run)
			continue
		}
		t := backend.TargetOf(run)
		if !failed[t] {
			accounts, err := c.owners.get(ctx, c, t)
			if err == nil {
				l.accounts[keyOf(run)] = accounts
				known = append(known, run)
				continue
			}
			failed[t], l.unowned = true, errors.Join(
				l.unowned,
				fmt.Errorf("whose the nodes of DAG %d of %s/%s are: %w", run.Attempt, run.Namespace, run.Name, err),
			)
		}
		l.noteUnread(run)
	}
	return known
}

func (o *owners) get(ctx context.Context, c *Checker, t backend.Target) ([]string, error) {
	at := c.Now()
	o.mu.Lock()
	of, found := o.of[t]
	o.mu.Unlock()
	if found && at.Before(of.until) {
		return of.accounts, nil
	}
	accounts, err := c.Accounts(ctx, t)
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
