package nodes

import (
	"context"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// nodesAtOnce is how many open nodes one condor_q asks about at most: it holds the complete answer in memory. Every question makes the
// schedd scan its complete queue, so there should be few.
const nodesAtOnce = 50_000

// parts divides DAGs into parts that one question can cover. A DAG with more nodes is its own part.
func parts(runs []ledger.Run, open map[key]int) (all [][]ledger.Run) {
	for len(runs) > 0 {
		n, nodes := 1, open[keyOf(runs[0])]
		for ; n < len(runs) && n < crosscheck.MaxNamed && nodes+open[keyOf(runs[n])] <= nodesAtOnce; n++ {
			nodes += open[keyOf(runs[n])]
		}
		all, runs = append(all, runs[:n]), runs[n:]
	}
	return all
}

// constraints returns the questions about all nodes of some DAGs, to be asked one after another. open is the greatest number of a node, and one.
func constraints(runs []ledger.Run, nodes int) (all []string) {
	if len(runs) > 1 {
		uids := make([]string, len(runs))
		for i, run := range runs {
			uids[i] = run.UID
		}
		return []string{schedd.NodesConstraint(uids...)}
	}
	these := tagOf(runs[0]).NodesConstraint()
	if nodes <= nodesAtOnce {
		return []string{these}
	}
	for from := 0; from < nodes; from += nodesAtOnce {
		all = append(all, fmt.Sprintf("%s && %s", these, schedd.NodeRange(from, from+nodesAtOnce)))
	}
	return all
}

func tagOf(run ledger.Run) schedd.Tag { return schedd.Tag{UID: run.UID, Attempt: run.Attempt} }

// askQueue compares the queue with what the ledger knows.
func (c *Checker) askQueue(ctx context.Context, id schedd.Identity, all comparisons, questions []string, at time.Time) error {
	for _, question := range questions {
		if err := c.Schedd.QueueNodes(ctx, id, question, func(j schedd.Job) error { return all.hear(j, true, at) }); err != nil {
			return fmt.Errorf("cross-check queue: %w", err)
		}
	}
	return nil
}

// askHistory compares the history with what the queue did not show. It is read only back to the mark if all these DAGs were compared then, or
// were sent since.
func (c *Checker) askHistory(ctx context.Context, id schedd.Identity, all comparisons, runs []ledger.Run, since mark, at time.Time) error {
	var unseen []ledger.Run
	bound := schedd.HistoryBounds{Since: since.Newest}
	for _, run := range runs {
		k := all[keyOf(run)]
		if !k.unseen() {
			continue
		}
		unseen = append(unseen, run)
		if !k.sinceMark() || !since.covers(run) {
			bound.Since = ""
		}
	}
	if len(unseen) == 0 {
		return nil
	}
	for _, question := range constraints(unseen, 0) {
		if err := c.Schedd.HistoryNodes(ctx, id, question, bound, func(j schedd.Job) error { return all.hear(j, false, at) }); err != nil {
			return fmt.Errorf("cross-check history: %w", err)
		}
	}
	return nil
}

// newestHistory returns the id of the job that left the queue last, "" if none ever did.
func (c *Checker) newestHistory(ctx context.Context, id schedd.Identity) (string, error) {
	var newest string
	err := c.Schedd.HistoryNodes(ctx, id, "true", schedd.HistoryBounds{Limit: 1}, func(j schedd.Job) error {
		newest = j.ID()
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cross-check history: %w", err)
	}
	return newest, nil
}

// mark is the newest entry of the history at some time, and the DAGs that were compared with the history up to it.
type mark struct {
	crosscheck.Mark
	compared map[key]bool
}

// covers reports whether everything of a DAG that the history had at the mark has been compared.
func (m mark) covers(run ledger.Run) bool { return m.compared[keyOf(run)] || run.Submitted.After(m.At) }
