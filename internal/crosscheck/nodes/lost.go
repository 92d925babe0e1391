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
	started := func(_ context.Context, _ schedd.Identity, t backend.Target) int64 { return c.Started(t) }
	return c.LookForLost(ctx, (*ledger.Tx).LostDAGs, started,
		func(ctx context.Context, id schedd.Identity, g backend.Group) error {
			_, err := c.reconcileGroup(ctx, id, g, false, func(crosscheck.Difference) {})
			return err
		})
}
