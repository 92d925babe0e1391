package schedd

import (
	"bytes"
	"context"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/tool"
)

// Remove removes the matching jobs, with a reason that their ads keep. It is not an error if none match; condor_rm reports the
// same for jobs that this identity may not remove, so only a query shows that nothing is left. A completed job that still
// waits in the queue enters the history as removed with LastJobStatus 4: it stays completed.
func (c *Client) Remove(ctx context.Context, id Identity, constraint, reason string) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	args = append(args, "-constraint", constraint)
	if reason = strings.Join(strings.Fields(reason), " "); reason != "" {
		args = append(args, "-reason", reason)
	}
	var out bytes.Buffer
	return c.run(ctx, command{
		name: "condor_rm", args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out),
		answers: func(e *Error) bool { return e.ExitCode == 1 && nothingMatched(e.Stderr) },
	})
}
