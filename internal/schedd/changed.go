package schedd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Period is the time in which jobs have changed that Query.Changed asks about. It is given by two clocks, so that no
// single step of either hides a change: one that the schedd dates before From, because its clock was set back, is
// recent by Age, and one that seems older than Age, because the clock was set forward, is after From.
type Period struct {
	From int64         // by the schedd's clock (Job.ServerTime), in Unix seconds
	Age  time.Duration // until now, by the caller's clock
	Most int           // maximum number of jobs
}

// ErrTooMany: more jobs have changed than were asked for.
var ErrTooMany = errors.New("more jobs have changed than one answer may hold")

// Constraint matches the jobs whose state may have changed in the period. A shadow that suspends or continues its job
// changes JobStatus alone, so suspended jobs always match. A time that is no number matches as well.
func (p Period) Constraint() condor.Constraint {
	return condor.Constraint(
		fmt.Sprintf("(EnteredCurrentStatus < %d && EnteredCurrentStatus < time() - %d && JobStatus < %d) =!= true",
			p.From, int64(p.Age/time.Second)+1, condor.TransferringOutput),
	)
}

func (c *Client) changed(ctx context.Context, id Identity, q question, p Period, fn condor.JobFunc) error {
	q.Where = both(p.Constraint(), q.Where)
	q.limits, q.most = []string{"-limit", strconv.Itoa(p.Most + 1)}, p.Most+1
	seen := 0
	return c.queue(ctx, id, q, func(j condor.Job) error {
		if seen++; seen > p.Most {
			return ErrTooMany
		}
		return fn(j)
	})
}
