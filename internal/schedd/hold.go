package schedd

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// PoolConstraint matches the jobs of these HTCJobs and HTCWorkflows that were sent by way of a pool, nodes and DAGMan's
// own jobs included.
func PoolConstraint(pool string, uids ...string) condor.Constraint {
	of := condor.Constraint(condor.AttrPool + " =?= " + classad.Quote(pool))
	return of.And(condor.MemberOf(condor.AttrWorkflow+" ?: "+condor.AttrUID, uids))
}

// waiting is true for a job that waits for a slot, and for a DAGMan, which sends further ones. What DAGMan has sent
// goes on while it is on hold. A factory of jobs makes no more of them while it is on hold; its ad has no status.
var waiting = fmt.Sprintf(
	"(JobStatus == %d || JobUniverse == %d && JobStatus == %d || %s && (JobMaterializePaused ?: %d) == %d)",
	condor.Idle,
	schedulerUniverse,
	condor.Running,
	aFactory,
	factoryGoesOn,
	factoryGoesOn,
)

const aFactory = condor.AttrMade + " =!= undefined && ProcId =?= undefined"

// PoolHold begins the reason of a HoldIdle, by which factories are told that it holds.
const PoolHold = "htcd: HTCPool "

const schedulerUniverse = 7

// HoldIdle puts the matching jobs that wait for a slot on hold, as those of a suspended pool, and DAGMan's, and
// factories. It is not an error if none match; condor_hold reports the same for jobs that this identity may not hold.
type HoldIdle struct {
	Where  condor.Constraint
	Reason string
}

func (h HoldIdle) by(ctx context.Context, c *Client, id Identity) (Outcome, error) {
	return c.change(
		ctx,
		id,
		"condor_hold",
		condor.Constraint(fmt.Sprintf("%s && (%s)", waiting, h.Where)),
		"-reason",
		h.Reason,
		"-subcode",
		fmt.Sprint(condor.PoolHoldSubCode),
	)
}

// ReleaseHeld ends the hold of the matching jobs that HoldIdle held, and of no others. It is not an error if none
// match.
type ReleaseHeld struct {
	Where  condor.Constraint
	Reason string
}

func (r ReleaseHeld) by(ctx context.Context, c *Client, id Identity) (Outcome, error) {
	return c.change(
		ctx,
		id,
		"condor_release",
		condor.Constraint(
			fmt.Sprintf("(JobStatus == %d && %s || %s && substr(JobMaterializePauseReason, 0, %d) == %q) && (%s)",
				condor.Held, condor.PoolHeld, aFactory, len(PoolHold), PoolHold, r.Where),
		),
		"-reason",
		r.Reason,
	)
}
