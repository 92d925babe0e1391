package schedd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Tail describes what to read of a running job.
type Tail struct {
	Cluster, Proc int
	Stderr        bool  // its standard error instead of its standard output
	Follow        bool  // go on with what it writes, until it ends or the context does
	MaxBytes      int64 // of one transfer: of the end of what is there at first, of what came since then in Follow
	Timeout       time.Duration
}

// Tail copies what a running job has written to w, straight from the node it runs on. The node's
// starter does nothing else while it sends, so w must never wait for anybody.
//
// If the job does not run (any more), condor_tail asks again every 2 s and never reports it: check that it runs before,
// and end the context when it does not. With Follow it ends without an error when it can no longer reach the starter.
func (c *Client) Tail(ctx context.Context, id Identity, t Tail, w io.Writer) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	args = append(args, "-maxbytes", strconv.FormatInt(t.MaxBytes, 10))
	if t.Stderr {
		args = append(args, "-stderr")
	}
	if t.Follow {
		args = append(args, "-follow")
	}
	args = append(args, fmt.Sprintf("%d.%d", t.Cluster, t.Proc))
	return c.run(ctx, command{name: "condor_tail", args: args, id: id, timeout: t.Timeout, read: func(r io.Reader) error {
		_, err := io.Copy(w, r)
		if err != nil && ctx.Err() == nil {
			return &callerError{err}
		}
		return nil
	}})
}
