package schedd

import (
	"bytes"
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// PoolConstraint matches the jobs of these HTCJobs and HTCWorkflows that were sent by way of a pool, nodes and DAGMan's
// own jobs included.
func PoolConstraint(pool string, uids ...string) string {
	return fmt.Sprintf("%s =?= %s && %s", condor.AttrPool, classad.Quote(pool), condor.MemberOf(condor.AttrWorkflow+" ?: "+condor.AttrUID, uids))
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

// PoolHold begins the reason of a hold of HoldIdle, by which factories are told that it holds.
const PoolHold = "htcd: HTCPool "

const schedulerUniverse = 7

// HoldIdle puts the matching jobs that wait for a slot on hold, as those of a suspended pool, and DAGMan's, and
// factories. It is not an error if none match; condor_hold reports the same for jobs that this identity may not hold.
func (c *Client) HoldIdle(ctx context.Context, id Identity, constraint, reason string) error {
	_, err := c.change(
		ctx,
		id,
		"condor_hold",
		fmt.Sprintf("%s && (%s)", waiting, constraint),
		"-reason",
		reason,
		"-subcode",
		fmt.Sprint(condor.PoolHoldSubCode),
	)
	return err
}

// ReleaseHeld ends the hold of the matching jobs that HoldIdle held, and of no others. It is not an error if none
// match.
func (c *Client) ReleaseHeld(ctx context.Context, id Identity, constraint, reason string) error {
	_, err := c.change(
		ctx,
		id,
		"condor_release",
		fmt.Sprintf("(JobStatus == %d && %s || %s && substr(JobMaterializePauseReason, 0, %d) == %q) && (%s)",
			condor.Held, condor.PoolHeld, aFactory, len(PoolHold), PoolHold, constraint),
		"-reason",
		reason,
	)
	return err
}

// change runs one of the commands that change the state of the jobs that a constraint matches. It reports whether there
// were any that this identity may change.
func (c *Client) change(
	ctx context.Context,
	id Identity,
	name, constraint string,
	more ...string,
) (found bool, err error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return false, err
	}
	args = append(append(args, "-constraint", constraint), more...)
	var out bytes.Buffer
	none := false
	err = c.run(ctx, command{
		name: name, args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out),
		answers: func(e *condor.Error) bool {
			none = e.ExitCode == 1 && noJobs.MatchString(e.Stderr)
			return none
		},
	})
	return err == nil && !none, err
}
