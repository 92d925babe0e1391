package schedd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// all asks for every matching job. If the answer fails, one ad may be the cause: what its owner wrote into it must not
// hide the others. Then all asks which jobs exist, without any attribute that a user can make long; then for those
// whose ads are small; and if that fails too, for smaller and smaller groups, until it has isolated the jobs for which
// the answer fails. These are reported as Unread.
func (c *Client) all(ctx context.Context, q question, fn condor.JobFunc) error {
	var seen []jobNumber
	failure := c.ask(ctx, q.limited(attributes(q.fields())), func(j condor.Job) error {
		seen = append(seen, numberOf(j))
		return fn(j)
	})
	e, ok := errors.AsType[*condor.Error](failure)
	if !ok || e.Kind != condor.Unreachable && e.Kind != condor.Unknown || ctx.Err() != nil {
		return failure
	}
	there, err := c.census(ctx, q)
	if err != nil {
		return failure // it is not about one job
	}
	n := narrowing{client: c, q: q, fn: fn, failure: failure, seen: map[jobNumber]bool{}}
	for _, number := range seen {
		n.seen[number] = true
	}
	return n.within(ctx, there)
}

// identifying lists the attributes that identify a job. A job whose tag has a long text is not htcd's.
var (
	identifying = map[string]bool{
		"ClusterId":        true,
		"ProcId":           true,
		"JobStatus":        true,
		"Owner":            true,
		condor.AttrUID:     true,
		condor.AttrAttempt: true,
	}
	nodeIdentifying = map[string]bool{
		"ClusterId":         true,
		"ProcId":            true,
		"JobStatus":         true,
		"Owner":             true,
		condor.AttrWorkflow: true,
		condor.AttrDAG:      true,
		condor.AttrNode:     true,
	}
)

// census lists the matching jobs in the order of their numbers.
func (c *Client) census(ctx context.Context, q question) ([]condor.Job, error) {
	var there []condor.Job
	named, tag := identifying, condor.AttrUID+","+condor.AttrAttempt
	if q.Nodes {
		named, tag = nodeIdentifying, attributes(nodeTags)
	}
	err := c.ask(ctx, q.limited("ClusterId,ProcId,JobStatus,Owner,"+tag, small(named)), func(j condor.Job) error {
		there = append(there, j)
		return nil
	})
	slices.SortFunc(
		there,
		func(a, b condor.Job) int {
			return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Proc, b.Proc))
		},
	)
	return there, err
}

// narrowing is the state of a search for the jobs that make a question fail.
type narrowing struct {
	client   *Client
	q        question
	fn       condor.JobFunc
	failure  error // of the complete question
	failures int   // of parts of it
	seen     map[jobNumber]bool
}

// maxFailures limits the failed commands of a narrowing. Finding one job among a million takes 20.
const maxFailures = 100

// within asks for some existing jobs, in the order of their numbers.
func (n *narrowing) within(ctx context.Context, there []condor.Job) error {
	if len(there) == 0 {
		return nil
	}
	err := n.client.ask(
		ctx,
		n.q.about(attributes(n.q.fields()), span(there), small(n.q.fields())),
		func(j condor.Job) error {
			if n.seen[numberOf(j)] {
				return nil
			}
			n.seen[numberOf(j)] = true
			return n.fn(j)
		},
	)
	e, failed := errors.AsType[*condor.Error](err)
	switch {
	case err != nil && !failed:
		return err // of fn
	case failed && (e.Kind != condor.Unreachable && e.Kind != condor.Unknown || ctx.Err() != nil):
		return err
	case failed && len(there) > 1:
		if n.failures++; n.failures > maxFailures {
			return n.failure
		}
		half := len(there) / 2
		if err := n.within(ctx, there[:half]); err != nil {
			return err
		}
		return n.within(ctx, there[half:])
	}
	for _, j := range there {
		if n.seen[numberOf(j)] {
			continue
		}
		n.seen[numberOf(j)] = true
		j.Unread, j.Reasoned = true, true
		if err := n.fn(j); err != nil {
			return err
		}
	}
	return nil
}

// span matches the jobs from the first to the last, and perhaps some more of their clusters.
func span(jobs []condor.Job) condor.Constraint {
	first, last := jobs[0], jobs[len(jobs)-1]
	these := condor.Constraint(fmt.Sprintf("ClusterId >= %d && ClusterId <= %d", first.Cluster, last.Cluster))
	if first.Cluster == last.Cluster {
		these = these.And(condor.Numbers(false, first.Proc, last.Proc))
	}
	return these
}
