package workflow

import (
	"context"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// HTCondor does not report how much the nodes of a DAG have left, and all of it comes with one command. So a fetch that
// needs too much is broken off, and begins again when there is room for more than it had taken until then.

// leastOutput is what the output of a DAG needs in any case.
var leastOutput = output.Room{Bytes: 64 << 10, Files: 16}

// book books room for the output of a DAG, or says why a try is not worth it.
func (c *Controller) book(run ledger.Run) (*output.Booking, error) {
	needs := leastOutput.Plus(c.Memory.Of(keyOf(run)).Kind.took)
	booking, left, err := c.Shares.BookAll(run.Namespace, needs)
	if err != nil || booking != nil {
		return booking, noSpace(err)
	}
	why := fmt.Sprintf(
		"for which the volume has no room beside the %d MiB and %d files that stay free (--keep-free)",
		left.Reserve.Bytes>>20,
		left.Reserve.Files,
	)
	if left.Free.Holds(needs) {
		why = fmt.Sprintf("with which namespace %s %s", run.Namespace, output.OverShare)
	}
	return nil, &output.NoSpaceError{
		Message: fmt.Sprintf("the nodes of DAG %d.0 left %d MiB in %d files or more, %s: %s",
			run.Cluster, (needs.Bytes+1<<20-1)>>20, needs.Files, why, output.MoreRoom),
	}
}

// transfer brings what the nodes of a DAG have left.
func (c *Controller) transfer(
	ctx context.Context,
	id schedd.Identity,
	run ledger.Run,
	procs schedd.Procs,
	dir string,
	b *output.Booking,
) error {
	err := b.Guarded(ctx, func(ctx context.Context) error { return c.Schedd.Transfer(ctx, id, procs, dir) })
	if err == nil {
		return nil
	}
	if errors.Is(err, output.ErrTooMuch) || errors.Is(err, output.ErrOverShare) || output.Full(err) {
		took := output.Taken(dir)
		c.Memory.Change(keyOf(run), func(r *record) { r.Kind.took = took })
		again, err := c.book(run)
		if err != nil {
			return err
		}
		again.Leave()
	}
	return noSpace(fmt.Errorf("fetch: %w", err))
}

// noSpace distinguishes a full volume from other problems with it.
func noSpace(err error) error {
	if errors.Is(err, output.ErrTooMuch) || errors.Is(err, output.ErrOverShare) || output.Full(err) {
		return &output.NoSpaceError{Message: err.Error() + ": " + output.MoreRoom}
	}
	return err
}
