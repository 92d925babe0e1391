package schedd

import (
	"context"
	"strings"
)

// Remove removes the matching jobs, with a reason that their ads keep. It is not an error if none match; condor_rm
// reports the same for jobs that this identity may not remove, so only a query shows that nothing is left. A completed
// job that still waits in the queue enters the history as removed with LastJobStatus 4: it stays completed.
func (c *Client) Remove(ctx context.Context, id Identity, constraint, reason string) error {
	_, err := c.remove(ctx, id, constraint, reason)
	return err
}

// remove is Remove, and reports whether anything was removed.
func (c *Client) remove(ctx context.Context, id Identity, constraint, reason string) (found bool, err error) {
	var why []string
	if reason = strings.Join(strings.Fields(reason), " "); reason != "" {
		why = []string{"-reason", reason}
	}
	return c.change(ctx, id, "condor_rm", constraint, why...)
}
