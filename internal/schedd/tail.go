package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// ErrNoNode is Tail's for a job that is running by its ad, but has no node: the one that it was to run on has just
// gone. The schedd notices after some seconds (23.9).
var ErrNoNode = errors.New("the schedd has no node for the job")

// Tail describes what to read of a running job.
type Tail struct {
	Cluster, Proc int
	Stderr        bool // its standard error instead of its standard output
	Follow        bool // continue with what it writes, until it or the context ends
	// per transfer: from the end of the existing output at first, then, with Follow, of what was added
	MaxBytes int64
	Timeout  time.Duration
}

// Tail copies what a running job has written to w, directly from the node it runs on. The node's starter does nothing
// else while it sends, so w must never block.
//
// If the job does not run (any more), condor_tail retries every 2 s and never reports it: check that it runs
// beforehand, and end the context when it no longer does. With Follow it ends without an error when it can no longer
// reach the starter.
func (c *Client) Tail(ctx context.Context, id Identity, t Tail, w io.Writer) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	// The streams are asked for by their names: a starter of HTCondor 25 that is asked for "stdout" says of each part
	// that it began at 0, and condor_tail -follow sends parts of it again.
	args = append(args, "-maxbytes", strconv.FormatInt(t.MaxBytes, 10), "-no-stdout")
	if t.Follow {
		args = append(args, "-follow")
	}
	stream := condor.Stdout
	if t.Stderr {
		stream = condor.Stderr
	}
	args = append(args, fmt.Sprintf("%d.%d", t.Cluster, t.Proc), stream)
	err = c.run(
		ctx,
		command{name: "condor_tail", args: args, id: id, timeout: t.Timeout, read: func(r io.Reader) error {
			_, err := io.Copy(w, r)
			if err != nil && ctx.Err() == nil {
				return &callerError{err}
			}
			return nil
		}},
	)
	var said *condor.Error
	if errors.As(err, &said) && strings.Contains(said.Stderr, "does not support remote access") {
		return ErrNoNode
	}
	return err
}
