package schedd

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// restartHoldSubCode is that of the hold in which a DAG gets another limit.
const restartHoldSubCode = 7285

// SetMaxJobs changes DAG.MaxJobs of a DAG that is in the queue. It may be repeated, and is no error if the DAG is not
// there any more.
//
// Up to HTCondor 25.9 DAGMan reads its limits from its ad every few seconds, since then only when it starts
// (HTCONDOR-3584), and an older one writes there what it was started with. So it is started again, which DAGMan is made
// for: what it has sent goes on meanwhile. dagman.sh gets the limit as its argument, and a newer DAGMan reads it in its
// ad. This is edited while DAGMan is held, as one that begins writes there, too.
type SetMaxJobs struct {
	Tag           condor.Tag
	Cluster, Jobs int
}

func (s SetMaxJobs) by(ctx context.Context, c *Client, id Identity) (Outcome, error) {
	dag := inCluster(s.Cluster).And(s.Tag.Constraint())
	running := condor.Constraint(fmt.Sprintf("JobStatus == %d && (%s)", condor.Running, dag))
	if _, err := c.change(
		ctx,
		id,
		"condor_hold",
		running,
		"-reason",
		"htcd: DAGMan is started again with another limit",
		"-subcode",
		fmt.Sprint(restartHoldSubCode),
	); err != nil {
		return Outcome{}, err
	}
	if _, err := c.edit(
		ctx,
		id,
		dag,
		"DAGMan_MaxJobs",
		fmt.Sprint(s.Jobs),
		"Arguments",
		classad.Quote(fmt.Sprint(s.Jobs)),
	); err != nil {
		return Outcome{}, err
	}
	held := condor.Constraint(
		fmt.Sprintf("JobStatus == %d && HoldReasonSubCode =?= %d && (%s)", condor.Held, restartHoldSubCode, dag),
	)
	return c.change(ctx, id, "condor_release", held, "-reason", "htcd: DAGMan has another limit")
}
