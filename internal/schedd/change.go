package schedd

import (
	"bytes"
	"context"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// Change is what is done to jobs in the queue: Remove, Release, HoldIdle, ReleaseHeld, SetMaxJobs, SetParallelism or
// StopMaking.
type Change interface {
	by(ctx context.Context, c *Client, id Identity) (Outcome, error)
}

// Outcome is what came of a change.
type Outcome struct {
	Found bool // there was something to change
	Made  int  // of StopMaking: how many jobs the factory has made
}

// Change makes a change.
func (c *Client) Change(ctx context.Context, id Identity, ch Change) (Outcome, error) {
	return ch.by(ctx, c, id)
}

// Remove removes the matching jobs, with a reason that their ads keep. It is not an error if none match; condor_rm
// reports the same for jobs that this identity may not remove, so only a query shows that nothing is left. A completed
// job that still waits in the queue enters the history as removed with LastJobStatus 4: it stays completed.
type Remove struct {
	Where  condor.Constraint
	Reason string
}

func (r Remove) by(ctx context.Context, c *Client, id Identity) (Outcome, error) {
	var why []string
	if reason := strings.Join(strings.Fields(r.Reason), " "); reason != "" {
		why = []string{"-reason", reason}
	}
	return c.change(ctx, id, "condor_rm", r.Where, why...)
}

// change runs one of the commands that change the state of the jobs that a constraint matches. It finds those that this
// identity may change.
func (c *Client) change(
	ctx context.Context,
	id Identity,
	name string,
	where condor.Constraint,
	more ...string,
) (o Outcome, err error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return o, err
	}
	args = append(append(args, "-constraint", string(where)), more...)
	var out bytes.Buffer
	none := false
	err = c.run(ctx, command{
		name: name, args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out),
		answers: func(e *condor.Error) bool {
			none = e.ExitCode == 1 && noJobs.MatchString(e.Stderr)
			return none
		},
	})
	return Outcome{Found: err == nil && !none}, err
}
