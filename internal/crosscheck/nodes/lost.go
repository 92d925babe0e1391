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
	if err != nil {
		return err
	}
	pass := crosscheck.Pass{Runs: runs, As: c.As, Now: c.Now, Over: c.Observer.Passed}
	started := func(_ context.Context, _ schedd.Identity, t backend.Target) int64 { return c.Started(t) }
	return c.gate.LookForLost(ctx, pass, c.Whole, started,
		func(ctx context.Context, _ schedd.Identity, g backend.Group) error {
			_, err := c.reconcileGroup(ctx, g, false, func(crosscheck.Difference) {})
			return err
		})
}
