package nodes

import (
	"context"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// lookForLost compares the DAGs some of whose nodes were called lost with queue and history: see crosscheck/lost.go.
func (c *Checker) lookForLost(ctx context.Context) error {
	var runs []ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.LostDAGs(c.Now().Add(-crosscheck.LookBack))
		return err
	})
	if err != nil || len(runs) == 0 {
		return err
	}
	pass := crosscheck.Pass{Kind: crosscheck.LookingForLost, Runs: runs, As: c.As, Now: c.Now, Over: c.Observer.Passed}
	return c.gate.Each(ctx, pass, func(ctx context.Context, _ schedd.Identity, g backend.Group) error {
		if !c.gate.MayLookForLost(g.Target, c.Now(), c.Started(g.Target), len(g.Runs), c.Whole) {
			return nil
		}
		_, err := c.reconcileGroup(ctx, g, false, func(crosscheck.Difference) {})
		if err != nil {
			c.gate.LookForLostAgain(g.Target)
		}
		return err
	})
}
