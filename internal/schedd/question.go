package schedd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// question is a query by condor_q or condor_history.
type question struct {
	command
	Query
	limits  []string // -limit and the like: how many of the matching jobs
	bounds  []string // -since: where to stop, whatever is requested
	most    int      // limits and bounds for a mirror
	since   string
	reasons bool // the jobs' reasons are requested with the rest
}

// explained asks for the reasons, too, and only about jobs that have no long one.
func (q question) explained() question {
	q.Where = both(q.Where, small(reasons))
	q.reasons = true
	return q
}

// both joins two constraints, the first of which is evaluated first; either may be empty.
func both(first, second condor.Constraint) condor.Constraint {
	if first == "" || second == "" {
		return first + second
	}
	return "(" + first + ") && (" + second + ")"
}

// fields returns what is requested of the jobs.
func (q question) fields() map[string]func(*condor.Job, classad.Value) {
	of := fields
	switch {
	case q.Presence && q.UIDs:
		of = taggedPresence
	case q.Presence:
		of = presence
	case q.Nodes:
		of = nodeFields
	}
	if q.reasons {
		return withMore(of, reasons)
	}
	return of
}

// about returns the command line for some attributes of the jobs that match all constraints.
func (q question) about(projection string, constraints ...condor.Constraint) command {
	cmd := q.command
	cmd.args = append(slices.Clone(cmd.args), "-attributes", projection)
	constraints = slices.DeleteFunc(
		append([]condor.Constraint{q.Where}, constraints...),
		func(c condor.Constraint) bool { return c == "" },
	)
	if len(constraints) > 1 {
		for i, c := range constraints {
			constraints[i] = "(" + c + ")"
		}
	}
	where := ""
	if len(constraints) > 0 {
		where = string(constraints[0].And(constraints[1:]...))
		cmd.args = append(cmd.args, "-constraint", where)
	}
	cmd.args = append(cmd.args, q.bounds...)
	cmd.asked = Question{
		Left:       cmd.name == "condor_history",
		Constraint: where,
		Attributes: projection,
		Since:      q.since,
	}
	return cmd
}

// limited is like about, with the question's limit on the number of jobs.
func (q question) limited(projection string, constraints ...condor.Constraint) command {
	cmd := q.about(projection, constraints...)
	cmd.args = append(cmd.args, q.limits...)
	cmd.asked.Limit = q.most
	return cmd
}

// ErrReasons is returned by fn for a job that it cannot judge without HoldReason, LastHoldReason, RemoveReason or
// Outputs. fn is then called for that job once more, with the reasons, after all others. Reasons are requested
// separately, a few at a time, and only if they are short enough for people to read: a job's owner decides how long
// they are, and an answer that contains one of 17 MB fails completely.
var ErrReasons = errors.New("the job's reasons are needed")

// answer calls fn for every matching job.
func (c *Client) answer(ctx context.Context, q question, fn condor.JobFunc) error {
	var unjudged []jobState
	err := c.all(ctx, q, func(j condor.Job) error {
		err := fn(j)
		if errors.Is(err, ErrReasons) {
			unjudged = append(unjudged, jobState{numberOf(j), j.Status})
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(unjudged, reasonsAtOnce) {
		if err := c.reasons(ctx, q, some, fn); err != nil {
			return err
		}
	}
	return nil
}

const (
	// reasonsAtOnce is how many jobs' reasons are requested together: their numbers take at most 80 KB of the command
	// line, and each question has the schedd look through its queue, or its history.
	reasonsAtOnce = 4000
	noReason      = "HTCondor gives no reason, or one of more than 4096 bytes, which is not asked for"
)

// jobState is a job that was seen in a state. There may be 100,000 of them.
type jobState struct {
	jobNumber
	status condor.JobStatus
}

// reasons requests some jobs once more, with their reasons.
func (c *Client) reasons(ctx context.Context, q question, jobs []jobState, fn condor.JobFunc) error {
	left := map[jobNumber]bool{}
	var clusters, procs, states []int
	for _, j := range jobs {
		left[j.jobNumber] = true
		clusters, procs, states = append(clusters, j.cluster), append(procs, j.proc), append(states, int(j.status))
	}
	// The schedd evaluates this for each job in its queue, so cheap conditions that few jobs meet come first.
	these := anyOf("JobStatus", states).And(anyOf("ClusterId", clusters), anyOf("ProcId", procs))
	q.Where = both(these, q.Where)
	why := q.explained()
	err := c.ask(ctx, why.about(attributes(why.fields())), func(j condor.Job) error {
		if !left[numberOf(j)] {
			return nil
		}
		delete(left, numberOf(j))
		j.Reasoned = true
		return fn(j)
	})
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return nil
	}
	// A job that has since left the queue is not in this answer: the history, which is asked after the queue, has its
	// reasons.
	return c.ask(ctx, q.about(attributes(q.fields())), func(j condor.Job) error {
		if !left[numberOf(j)] {
			return nil
		}
		delete(left, numberOf(j))
		return fn(unexplained(j))
	})
}

// unexplained returns the job as one whose reasons are too long to be requested.
func unexplained(j condor.Job) condor.Job {
	j.HoldReason, j.LastHoldReason, j.RemoveReason, j.Reasoned = noReason, noReason, noReason, true
	return j
}

// anyOf matches jobs whose attribute is one of the numbers. The schedd compares a job with one number of a list after
// the other, so long ones are searched by halves: of 98,000 nodes of a DAG, each a cluster of its own, a plain list of
// 4,000 took 30 s (HTCondor 23.9).
func anyOf(attribute string, numbers []int) condor.Constraint {
	slices.Sort(numbers)
	return condor.Constraint(among(attribute, slices.Compact(numbers)))
}

func among(attribute string, numbers []int) string {
	n := len(numbers)
	first, last := numbers[0], numbers[n-1]
	switch {
	case n == 1:
		return fmt.Sprintf("%s == %d", attribute, first)
	case last-first == n-1:
		return fmt.Sprintf("%s >= %d && %s <= %d", attribute, first, attribute, last)
	case n <= shortList:
		return fmt.Sprintf(
			"member(%s, {%s})",
			attribute,
			strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ","),
		)
	}
	return fmt.Sprintf(
		"(%s <= %d ? %s : %s)",
		attribute,
		numbers[n/2-1],
		among(attribute, numbers[:n/2]),
		among(attribute, numbers[n/2:]),
	)
}

// shortList is how many numbers are compared one after the other.
const shortList = 32

// small matches jobs none of whose attributes has a long text, be it a string or an expression. It costs the schedd a
// few microseconds per job.
func small[T any](of map[string]T) condor.Constraint {
	var all []string
	for name := range of {
		all = append(all, "(size(unparse("+name+")) > "+strconv.Itoa(condor.MaxText)+") =!= true")
	}
	slices.Sort(all)
	return condor.Constraint(strings.Join(all, " && "))
}

// jobNumber is a job's number at its schedd.
type jobNumber struct{ cluster, proc int }

func numberOf(j condor.Job) jobNumber { return jobNumber{j.Cluster, j.Proc} }
