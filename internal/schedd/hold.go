package schedd

import (
	"bytes"
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// The hold of a suspended pool. Its code is that of every condor_hold; the subcode, which condor_hold -subcode sets, is
// nobody else's, so that exactly these jobs are released again.
const (
	PoolHoldCode    = 1
	PoolHoldSubCode = 7284
)

// heldByPool is true for a job held because its pool is suspended.
var heldByPool = fmt.Sprintf("HoldReasonCode =?= %d && HoldReasonSubCode =?= %d", PoolHoldCode, PoolHoldSubCode)

// notHeldByPool is its opposite; an ad without a hold has neither attribute.
var notHeldByPool = fmt.Sprintf("(HoldReasonCode =!= %d || HoldReasonSubCode =!= %d)", PoolHoldCode, PoolHoldSubCode)

// HeldByPool reports whether the job is on hold because its pool is suspended.
func (j Job) HeldByPool() bool {
	return j.Status == Held && j.HoldReasonCode == PoolHoldCode && j.HoldReasonSubCode == PoolHoldSubCode
}

// PoolConstraint matches the jobs of these HTCJobs and HTCWorkflows that were sent by way of a pool, nodes and DAGMan's
// own jobs included.
func PoolConstraint(pool string, uids ...string) string {
	return fmt.Sprintf("%s =?= %s && %s", attrPool, classad.Quote(pool), memberOf(attrWorkflow+" ?: "+attrUID, uids))
}

// waiting is true for a job that waits for a slot, and for a DAGMan, which sends further ones. What DAGMan has sent
// goes on while it is on hold. A factory of jobs makes no more of them while it is on hold; its ad has no status.
var waiting = fmt.Sprintf(
	"(JobStatus == %d || JobUniverse == %d && JobStatus == %d || %s && (JobMaterializePaused ?: %d) == %d)",
	Idle,
	schedulerUniverse,
	Running,
	aFactory,
	factoryGoesOn,
	factoryGoesOn,
)

const aFactory = attrMade + " =!= undefined && ProcId =?= undefined"

// PoolHold begins the reason of a hold of HoldIdle, by which factories are told that it holds.
const PoolHold = "htcd: HTCPool "

const schedulerUniverse = 7

// HoldIdle puts the matching jobs that wait for a slot on hold, as those of a suspended pool, and DAGMan's, and
// factories. It is not an error if none match; condor_hold reports the same for jobs that this identity may not hold.
func (c *Client) HoldIdle(ctx context.Context, id Identity, constraint, reason string) error {
	return c.change(
		ctx,
		id,
		"condor_hold",
		fmt.Sprintf("%s && (%s)", waiting, constraint),
		"-reason",
		reason,
		"-subcode",
		fmt.Sprint(PoolHoldSubCode),
	)
}

// ReleaseHeld ends the hold of the matching jobs that HoldIdle held, and of no others. It is not an error if none
// match.
func (c *Client) ReleaseHeld(ctx context.Context, id Identity, constraint, reason string) error {
	return c.change(
		ctx,
		id,
		"condor_release",
		fmt.Sprintf("(JobStatus == %d && %s || %s && substr(JobMaterializePauseReason, 0, %d) == %q) && (%s)",
			Held, heldByPool, aFactory, len(PoolHold), PoolHold, constraint),
		"-reason",
		reason,
	)
}

// change runs one of the commands that change the state of the jobs that a constraint matches.
func (c *Client) change(ctx context.Context, id Identity, name, constraint string, more ...string) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	args = append(append(args, "-constraint", constraint), more...)
	var out bytes.Buffer
	return c.run(ctx, command{
		name: name, args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out),
		answers: func(e *Error) bool { return e.ExitCode == 1 && nothingMatched(e.Stderr) },
	})
}
