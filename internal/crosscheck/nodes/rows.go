package nodes

import (
	"context"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// readRows reads what the ledger knows of the nodes of some DAGs that HTCondor has not confirmed the end of; full: also
// of the others.
func (c *Checker) readRows(ctx context.Context, runs []ledger.Run, l *look, full bool) (comparisons, error) {
	all := make(comparisons, len(runs))
	var left []pages
	for _, run := range runs {
		k := &comparison{
			dag:       dag{run: run},
			accounts:  l.accounts[keyOf(run)],
			asked:     l.since.At,
			full:      full,
			unchanged: map[int]seen{},
			rows:      map[int]ledger.Node{},
		}
		all[keyOf(run)] = k
		left = append(left, pages{k.readOwn, 0}, pages{k.readWaiting, 0})
		if full {
			left = append(left, pages{k.readAll, 0})
		} else {
			left = append(left, pages{k.readUnchanged, 0}, pages{k.readOthers, 0})
		}
	}
	for len(left) > 0 {
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
			for n := 0; n < pagesAtOnce && len(left) > 0; n++ {
				p := &left[0]
				if p.from, err = p.read(tx, p.from); err != nil {
					return err
				}
				if p.from > 0 {
					return nil // it was a full one
				}
				left = left[1:]
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pagesAtOnce is how many pages that are not full are read in one transaction.
const pagesAtOnce = 32

// pages are rows of one kind, read page by page.
type pages struct {
	read func(tx *ledger.Tx, from int) (next int, err error) // next is where the next page begins, 0 after the last
	from int
}

// readOwn reads the row of DAGMan's own job once its end is confirmed.
func (k *comparison) readOwn(tx *ledger.Tx, _ int) (int, error) {
	if !k.ended() {
		return 0, nil
	}
	procs, err := tx.Procs(k.run.UID, k.run.Attempt, ledger.ProcFilter{Limit: 1})
	if len(procs) > 0 {
		k.own = procs[0]
	}
	return 0, err
}

func (k *comparison) readWaiting(tx *ledger.Tx, from int) (next int, err error) {
	return tx.WaitingNodes(k.run.UID, k.run.Attempt, &k.waiting, from)
}

func (k *comparison) readUnchanged(tx *ledger.Tx, from int) (next int, err error) {
	read, last := 0, 0
	err = tx.UnchangedNodes(k.run.UID, k.run.Attempt, from, crosscheck.PageSize, func(number, cluster, jobStatus int) {
		k.unchanged[number] = seen{cluster, condor.JobStatus(jobStatus)}
		read, last = read+1, number
	})
	if read == crosscheck.PageSize {
		next = last + 1
	}
	return next, err
}

// readAll reads all nodes that had a job in this DAG.
func (k *comparison) readAll(tx *ledger.Tx, from int) (next int, err error) {
	page, err := tx.Nodes(k.run.UID, k.run.Attempt, ledger.NodeFilter{From: from, Limit: crosscheck.PageSize})
	for _, n := range page {
		if n.Cluster > 0 && n.Source != ledger.SourceCarried {
			k.rows[n.Number] = n
		}
		next = n.Number + 1
	}
	if len(page) < crosscheck.PageSize {
		next = 0
	}
	return next, err
}

func (k *comparison) readOthers(tx *ledger.Tx, from int) (next int, err error) {
	page, err := tx.Nodes(
		k.run.UID,
		k.run.Attempt,
		ledger.NodeFilter{Unconfirmed: true, Changed: true, From: from, Limit: crosscheck.PageSize},
	)
	for _, n := range page {
		k.rows[n.Number] = n
		next = n.Number + 1
	}
	if len(page) < crosscheck.PageSize {
		next = 0
	}
	return next, err
}
