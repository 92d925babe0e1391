package nodes

import (
	"context"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Reasons of nodes that no job was seen of.
const (
	ReasonFutile = "Futile"
	reasonDone   = "Completed"
)

const (
	messageDone   = "its DAG has succeeded; neither the queue nor the history of the schedd shows this job any more"
	messageFutile = "a job before it failed"
	messageGone   = "its DAG was removed before its turn"
	messageUnseen = "DAGMan has ended, and neither the queue nor the history of the schedd shows a job of this node: DAGMan could not send it, or the history is too short"
	messageUnmade = "neither the queue nor the history of the schedd shows a job of this node: it was not made, or the history is too short"
)

// dag is a run of a workflow, and the row of DAGMan's own job once HTCondor has confirmed its end.
type dag struct {
	run ledger.Run
	own ledger.Proc
}

func (d dag) ended() bool { return d.run.Confirmed }

// succeeded: DAGMan ends with 0 only if every node has succeeded.
func (d dag) succeeded() bool { return d.ended() && d.own.Status == ledger.StatusSucceeded }

// ran reports whether DAGMan ran to its end. It then waited for the ends of all its jobs.
func (d dag) ran() bool { return d.ended() && d.own.ExitCode != nil }

// over returns the ad of a job that was removed because DAGMan had run to its end as that of the completed job that it
// was: DAGMan knew its end by its log, and the schedd had forgotten it in an outage. If the schedd has run it again,
// its ad may have the code of a kill.
func (d dag) over(j condor.Job) condor.Job {
	j.Status = condor.Completed
	if d.succeeded() {
		j.ExitBySignal, j.ExitCode = new(false), new(0)
	}
	return j
}

// verdicts are what becomes of the nodes of an ended DAG of which no job was ever seen. The first is for the first such
// node of each sequence in which nothing has failed, nil if that is none of its own; the second for the others.
func (d dag) verdicts(at time.Time) (first *ledger.Verdict, rest ledger.Verdict) {
	rest = ledger.Verdict{Source: crosscheck.FromHTCondor, At: at}
	switch {
	case d.succeeded():
		rest.Status, rest.Reason, rest.Message = ledger.StatusSucceeded, reasonDone, messageDone
	case d.run.Stop != "":
		rest.Status, rest.Reason, rest.Message = ledger.StatusFutile, d.run.Stop, crosscheck.StopMessage(d.run.Stop)
	case !d.ran():
		rest.Status, rest.Reason, rest.Message = ledger.StatusFutile, d.own.Reason, messageGone
	default:
		lost := rest
		lost.Status, lost.Reason, lost.Message = ledger.StatusFailed, crosscheck.ReasonLost, messageUnseen
		if d.run.Factory > 0 { // none waits for another
			lost.Message = messageUnmade
			return nil, lost
		}
		rest.Status, rest.Reason, rest.Message = ledger.StatusFutile, ReasonFutile, messageFutile
		return &lost, rest
	}
	return nil, rest
}

// conclude gives the verdicts on the nodes of an ended DAG of which queue and history showed no job, once it is known
// what became of the others.
func (c *Checker) conclude(ctx context.Context, d dag, at time.Time) error {
	open, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Node, error) {
		return tx.Nodes(d.run.UID, d.run.Attempt, ledger.NodeFilter{Unconfirmed: true, Limit: 1})
	})
	if err != nil || len(open) > 0 || !c.missedBefore(d, at) {
		return err
	}
	defer c.Observer.Changed(d.run)
	first, rest := d.verdicts(at)
	if first != nil {
		err := c.eachPage(ctx, func(tx *ledger.Tx) (int, error) {
			return tx.EndFirstWaiting(d.run.UID, d.run.Attempt, *first, crosscheck.PageSize)
		})
		if err != nil {
			return err
		}
	}
	return c.eachPage(
		ctx,
		func(tx *ledger.Tx) (int, error) {
			return tx.EndWaiting(d.run.UID, d.run.Attempt, rest, crosscheck.PageSize)
		},
	)
}

// eachPage writes in transactions of their own until nothing is left.
func (c *Checker) eachPage(ctx context.Context, write func(*ledger.Tx) (int, error)) error {
	for n := 1; n > 0; {
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
			n, err = write(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("record nodes of an ended DAG: %w", err)
		}
	}
	return nil
}
