package nodes

import (
	"context"
	"slices"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// parts divides DAGs into parts that one question can cover. A DAG with more nodes is its own part.
func parts(runs []ledger.Run, sizes map[key]size) (all [][]ledger.Run) {
	open := func(run ledger.Run) int { return sizes[keyOf(run)].open }
	return crosscheck.Parts(runs, crosscheck.MaxNamed, crosscheck.JobsAtOnce, open)
}

// size is how many nodes a DAG has.
type size struct {
	open, total int
	shown       int // idle, running and held ones
}

// questions returns the constraints of the questions about all open nodes of one part, to be asked one after another.
func questions(runs []ledger.Run, sizes map[key]size) (constraints []condor.Constraint) {
	these, of := constraint(runs), sizes[keyOf(runs[0])]
	if len(runs) > 1 || of.open <= crosscheck.JobsAtOnce {
		return []condor.Constraint{these}
	}
	for from := 0; from < of.total; from += crosscheck.JobsAtOnce {
		constraints = append(constraints, these.And(condor.NodeRange(from, from+crosscheck.JobsAtOnce)))
	}
	return constraints
}

// constraint matches the nodes of these DAGs, and perhaps of others of the same workflows.
func constraint(runs []ledger.Run) condor.Constraint {
	if len(runs) == 1 {
		return condor.Tag{UID: runs[0].UID, Attempt: runs[0].Attempt}.NodesConstraint()
	}
	uids := make([]string, len(runs))
	for i, run := range runs {
		uids[i] = run.UID
	}
	return condor.NodesConstraint(uids...)
}

// askHistory has heard what the history says of nodes that the queue did not show. It is read only back to the mark if
// all these DAGs were compared then, or were sent since, and otherwise back to the time before they were sent, if that
// is known. What an earlier answer did not show is looked for in all of it.
func (c *Checker) askHistory(
	ctx context.Context,
	id schedd.Identity,
	all comparisons,
	runs []ledger.Run,
	since mark,
	hear condor.JobFunc,
) error {
	var unseen []ledger.Run
	oldest := since.Mark
	for _, run := range runs {
		k := all[keyOf(run)]
		if !k.unseen() {
			continue
		}
		unseen = append(unseen, run)
		switch {
		case k.leftNoTrace():
			oldest = crosscheck.Mark{}
		case k.ended() || !since.covers(run) && !run.Submitted.After(since.At):
			if before := since.before[keyOf(run)]; !before.At.After(oldest.At) {
				oldest = before
			}
		}
	}
	if len(unseen) == 0 {
		return nil
	}
	bound := schedd.HistoryBounds{Since: oldest.Newest, Enough: all.seen}
	left := schedd.Query{Where: constraint(unseen), Nodes: true, Left: &bound}
	return c.Query(ctx, id, left, hear)
}

// mark is the newest entry of the history at some time, and the DAGs that were compared with the history up to it, with
// the accounts whose jobs were theirs then.
type mark struct {
	crosscheck.Mark
	compared map[key][]string
	before   map[key]crosscheck.Mark // of DAGs that were sent after a cross-check: the mark of the latest before that
}

// covers reports whether a DAG was compared up to the mark. Where its account has become known since, as another one,
// its jobs were taken for somebody else's.
func (m mark) covers(run ledger.Run) bool {
	accounts, compared := m.compared[keyOf(run)]
	return compared && (run.Account == "" || slices.Contains(accounts, run.Account))
}

// suffices reports whether it is enough to ask what has changed of a DAG: once it has ended, what is missing matters.
func (m mark) suffices(run ledger.Run) bool { return m.covers(run) && !run.Confirmed }
