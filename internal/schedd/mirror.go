package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Question is what condor_q or condor_history is asked about jobs.
type Question struct {
	Left       bool   // of the jobs that have left the queue, the last first; otherwise of those in it
	Constraint string // empty: all
	Attributes string // joined by commas; empty: all
	Limit      int    // 0: no limit
	Since      string // of those that have left: stop before this one, "cluster.proc"
}

// LeftOut is the attribute in which a mirror names those that are too long for it.
const LeftOut = "LeftOut"

// Mirror answers questions about the jobs of a schedd in the schedd's place, in the JSON of condor_q.
type Mirror func(ctx context.Context, q Question) (io.ReadCloser, error)

// ErrMirror is that of a question which a mirror has not answered, or not to its end.
var ErrMirror = errors.New("the mirror has not answered")

// From returns a client whose Query asks a mirror what condor_q and condor_history are asked otherwise. Its other
// methods are not to be used. The ads of factories, which are clusters' own, are not mirrored.
func (c *Client) From(m Mirror) *Client { return &Client{o: c.o, mirror: m} }

func (c *Client) askMirror(ctx context.Context, cmd command) error {
	ctx, stop := context.WithTimeout(ctx, c.o.Timeout)
	defer stop()
	answer, err := c.mirror(ctx, cmd.asked)
	if err == nil {
		err = cmd.read(answer)
		_ = answer.Close() // it has been read
	}
	var own *callerError
	switch {
	case errors.As(err, &own):
		return own.error
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMirror, err)
	}
	return nil
}
