package workflow

import (
	"context"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// HTCondor does not report how much the nodes of a DAG have left, and all of it comes with one command. So a fetch that needs too much is
// broken off, and begins again when there is room for more than it had taken until then.

// leastOutput is what the output of a DAG needs in any case.
var leastOutput = output.Room{Bytes: 64 << 10, Files: 16}

// room returns what is free on the volume, and how much of that output must leave free.
func (c *Controller) room() (free, reserve output.Room, err error) {
	free, size, err := c.volume()
	return free, output.Reserve(c.KeepFree, size), err
}

// hasRoom returns nil if the output of a DAG is worth a try.
func (c *Controller) hasRoom(run ledger.Run) error {
	free, reserve, err := c.room()
	if err != nil {
		return noSpace(err)
	}
	needs := leastOutput.Plus(c.memory.of(keyOf(run)).took)
	if free.Minus(reserve).Holds(needs) {
		return nil
	}
	return &output.NoSpaceError{Message: fmt.Sprintf("the nodes of DAG %d.0 left %d MiB in %d files or more, for which the volume has no room beside the %d MiB and %d files that stay free (--keep-free): %s",
		run.Cluster, (needs.Bytes+1<<20-1)>>20, needs.Files, reserve.Bytes>>20, reserve.Files, output.MoreRoom)}
}

// transfer brings what the nodes of a DAG have left.
func (c *Controller) transfer(ctx context.Context, id schedd.Identity, run ledger.Run, procs schedd.Procs, dir string) error {
	err := output.Guarded(ctx, c.room, func(ctx context.Context) error { return c.Schedd.Transfer(ctx, id, procs, dir) })
	if err == nil {
		return nil
	}
	if errors.Is(err, output.ErrTooMuch) || output.Full(err) {
		took := output.Taken(dir)
		c.memory.change(keyOf(run), func(r *remembered) { r.took = took })
		if err := c.hasRoom(run); err != nil {
			return err
		}
	}
	return noSpace(fmt.Errorf("fetch: %w", err))
}

// noSpace distinguishes a full volume from other problems with it.
func noSpace(err error) error {
	if errors.Is(err, output.ErrTooMuch) || output.Full(err) {
		return &output.NoSpaceError{Message: err.Error() + ": " + output.MoreRoom}
	}
	return err
}
