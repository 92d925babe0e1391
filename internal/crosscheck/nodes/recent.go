package nodes

import (
	"context"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// look is one pass over the nodes of a target.
type look struct {
	crosscheck.Look
	target  backend.Target
	missing crosscheck.Missing
	since   mark         // of the latest cross-check
	failed  []key        // DAGs about which something could not be written
	unread  map[key]bool // these, and DAGs with nodes whose ads cannot be read, or that nobody can be shown to own

	accounts map[key][]string // the Owners that the jobs of a DAG may have
	unowned  error            // why those of some DAGs are not known
}

// noteUnread notes that not everything of a DAG was compared.
func (l *look) noteUnread(run ledger.Run) {
	if l.unread == nil {
		l.unread = map[key]bool{}
	}
	l.unread[keyOf(run)] = true
}

// checkRecent compares DAGs, all of whose nodes earlier passes have compared, with what has changed since. It asks
//
//  1. the queue for jobs that entered their state in the period,
//  2. the history for jobs that have left the queue since the latest cross-check,
//  3. the queue for unsettled nodes that neither answer showed, by name, and then the history once more for those that
//     left it meanwhile.
//
// Any other node is as its row says. If too much has changed, nothing is recorded, and the error is schedd.ErrTooMany.
func (c *Checker) checkRecent(
	ctx context.Context,
	id schedd.Identity,
	runs []ledger.Run,
	l *look,
) (answered bool, err error) {
	runs = c.owned(ctx, runs, l)
	if len(runs) == 0 {
		return true, nil
	}
	at := c.Now()
	all, err := c.readUnsettled(ctx, runs, l)
	if err != nil {
		return false, err
	}
	defer c.tellRepaired(all)
	these := condor.NodesTagged
	if len(runs) <= crosscheck.MaxNamed {
		these = constraint(runs)
	}
	err = c.hearAll(ctx, all, true, at, l, func(hear condor.JobFunc) error {
		return c.Query(ctx, id, schedd.Query{Where: these, Nodes: true, Changed: &l.Period}, hear)
	})
	if err != nil {
		return false, err
	}
	if l.History && l.Newest != l.since.Newest {
		never := func() bool { return false } // whatever has left is new
		bounds := schedd.HistoryBounds{Since: l.since.Newest, Limit: l.Period.Most + 1, Enough: never}
		err := c.hearAll(ctx, all, false, at, l, func(hear condor.JobFunc) error {
			return c.Query(ctx, id, schedd.Query{Where: these, Nodes: true, Left: &bounds}, hear)
		})
		if err != nil {
			return false, err
		}
	}
	if err := c.askNamed(ctx, id, all, runs, l, at); err != nil {
		return false, err
	}
	return true, c.apply(ctx, all, runs, l, at)
}

// maxNamedNodes is how many nodes a question names.
const maxNamedNodes = 4000

// askNamed asks about unsettled nodes of which nothing was heard. Between cross-checks those are left out that may have
// left the queue.
func (c *Checker) askNamed(
	ctx context.Context,
	id schedd.Identity,
	all comparisons,
	runs []ledger.Run,
	l *look,
	at time.Time,
) error {
	var clusters []int
	for _, k := range all {
		for _, n := range k.rows {
			if l.History || n.Status == ledger.StatusOpen && n.Absent == 0 {
				clusters = append(clusters, n.Cluster)
			}
		}
	}
	switch {
	case len(clusters) == 0:
		return nil
	case len(clusters) > maxNamedNodes:
		return schedd.ErrTooMany
	}
	named := schedd.Query{Where: schedd.NodesNamed(clusters), Nodes: true}
	if err := c.Query(ctx, id, named, all.hearer(true, at)); err != nil || !l.History {
		return err
	}
	since := l.since
	since.Newest = l.Newest
	return c.askHistory(ctx, id, all, runs, since, all.hearer(false, at))
}

// readUnsettled reads the rows of unsettled nodes.
func (c *Checker) readUnsettled(ctx context.Context, runs []ledger.Run, l *look) (comparisons, error) {
	all := make(comparisons, len(runs))
	for _, run := range runs {
		all[keyOf(run)] = &comparison{
			dag:      dag{run: run},
			accounts: l.accounts[keyOf(run)],
			asked:    l.since.At,
			rows:     map[int]ledger.Node{},
		}
	}
	rows, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Node, error) {
		return tx.UnsettledNodes(l.Period.Most + 1)
	})
	if err != nil {
		return nil, err
	}
	if len(rows) > l.Period.Most {
		return nil, schedd.ErrTooMany
	}
	for _, n := range rows {
		if k := all[key{n.UID, n.Attempt}]; k != nil {
			k.rows[n.Number] = n
		}
	}
	return all, nil
}

// hearAll compares the ads of an answer with the rows of their nodes, which are read once it is complete; of the few
// that need reasons, at once.
func (c *Checker) hearAll(
	ctx context.Context,
	all comparisons,
	queued bool,
	at time.Time,
	l *look,
	ask func(hear condor.JobFunc) error,
) error {
	var shown []condor.Job
	err := ask(func(j condor.Job) error {
		if queued {
			l.Hear(j)
		}
		if crosscheck.NeedsReason(j) {
			return c.hearShown(ctx, all, []condor.Job{j}, queued, at)
		}
		if shown = append(shown, j); len(shown) > l.Period.Most {
			return schedd.ErrTooMany
		}
		return nil
	})
	if err != nil {
		return err
	}
	for page := range slices.Chunk(shown, crosscheck.PageSize) {
		if err := c.hearShown(ctx, all, page, queued, at); err != nil {
			return err
		}
	}
	return nil
}

// hearShown compares ads with the rows of their nodes, which are known only until then unless they are unsettled.
func (c *Checker) hearShown(ctx context.Context, all comparisons, shown []condor.Job, queued bool, at time.Time) error {
	read, err := c.readShown(ctx, all, shown)
	if err != nil {
		return err
	}
	for _, n := range read {
		all[key{n.UID, n.Attempt}].rows[n.Number] = n
	}
	defer func() {
		for _, n := range read {
			delete(all[key{n.UID, n.Attempt}].rows, n.Number)
		}
	}()
	for _, j := range shown {
		if err := all.hear(j, queued, at); err != nil {
			return err
		}
	}
	return nil
}

// readShown reads the rows of nodes that are waiting or unconfirmed, and not yet known.
func (c *Checker) readShown(ctx context.Context, all comparisons, shown []condor.Job) (read []ledger.Node, err error) {
	numbers := map[key][]int{}
	for _, j := range shown {
		if k := all.of(j); k != nil {
			if _, known := k.rows[j.Node.Number]; !known {
				numbers[keyOf(k.run)] = append(numbers[keyOf(k.run)], j.Node.Number)
			}
		}
	}
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for k, some := range numbers {
			rows, err := tx.NodesAmong(k.uid, k.dag, some)
			if err != nil {
				return err
			}
			for _, n := range rows {
				if n.Status == ledger.StatusOpen || n.Source == crosscheck.FromCallback {
					read = append(read, n)
				}
			}
		}
		return nil
	})
	return read, err
}
