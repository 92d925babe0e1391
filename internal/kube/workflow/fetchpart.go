package workflow

import (
	"context"
	"errors"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// While a DAG goes on, the output of nodes that have ended is fetched in growing intervals, each node's once: their
// directories are named one by one, as condor_transfer_data would otherwise bring all of them each time.

// firstPart is the shortest interval; further ones are a tenth of the time since the DAG was sent.
const firstPart = 30 * time.Second

// partAt returns when that is due next; the zero time if no more nodes have ended than the last time, at which that
// many had.
func (s Situation) partAt(last time.Time, had int) time.Time {
	dag := s.newest()
	if dag == nil || !s.Unfetched || dag.Run.State != ledger.Submitted || dag.settled() || dag.ended() <= had {
		return time.Time{}
	}
	began := dag.Run.Submitted
	if last.Before(began) {
		last = began
	}
	return last.Add(max(firstPart, s.Now.Sub(began)/10))
}

// ended returns how many of its nodes have ended by themselves.
func (d DAG) ended() (n int) {
	for _, s := range d.Steps {
		n += s.Succeeded + s.Failed
	}
	return n
}

// fetchSome fetches what has ended of a DAG that goes on.
func (c *Controller) fetchSome(ctx context.Context, key string, d DAG) error {
	if !c.owesOutput(d) {
		return nil
	}
	if !c.Memory.Of(key).Kind.paging { // most ends are known from callbacks alone
		if err := c.nodes.Check(ctx, group(d.Run)); err != nil {
			return err
		}
	}
	n, err := c.fetchPage(ctx, d.Run)
	if err != nil && !errors.Is(err, errGone) {
		return err
	}
	if n == nodesAtOnce { // there may be more; others take turns
		c.Memory.Change(key, func(r *record) { r.Kind.paging = true })
		c.fetches.Add(key)
		return nil
	}
	c.Memory.Change(key, func(r *record) { r.Kind.part, r.Kind.parted, r.Kind.paging = c.Now(), d.ended(), false })
	return nil
}

// fetchRest fetches what is left of a DAG.
func (c *Controller) fetchRest(ctx context.Context, run ledger.Run) error {
	for {
		if n, err := c.fetchPage(ctx, run); err != nil || n == 0 {
			return err
		}
	}
}

// lacksDirectory reports whether the schedd does not have the directory of a node. Then all that there are can be
// fetched together.
func lacksDirectory(err error) bool {
	e, is := errors.AsType[*schedd.TransferError](err)
	return is && e.Gone()
}

// fetchPage fetches the output of the first nodes that have ended, and returns how many these were.
func (c *Controller) fetchPage(ctx context.Context, run ledger.Run) (int, error) {
	page, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Node, error) {
		return tx.NodesToFetch(run.UID, run.Attempt, nodesAtOnce)
	})
	if err != nil || len(page) == 0 {
		return 0, err
	}
	procs := dagJob(run)
	for _, n := range page {
		procs.Nodes = append(procs.Nodes, n.Number)
	}
	if err := c.brought(
		ctx,
		procs,
		run,
		func(from string) error { return c.keepPage(ctx, run, from, page) },
	); err != nil {
		return 0, err
	}
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.NodesFetched(run.UID, run.Attempt, page) })
	c.Observer.NodesFetched(len(page))
	c.pusher.Queue.Add(keyOf(run))
	return len(page), err
}
