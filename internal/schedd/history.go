package schedd

import (
	"context"
	"strconv"
)

// HistoryBounds keep a history query cheap: without them the schedd reads its whole
// history, 2.7 s for 100,000 ads; Limit 1000 or ScanLimit 1000 take 0.03 s.
type HistoryBounds struct {
	Limit     int    // stop after so many matches; 0: no limit
	ScanLimit int    // look at no more than so many ads; 0: no limit
	Since     string // stop at this ad, "cluster.proc", or at the first that matches this expression; it is not shown
}

// History calls fn for every job that left the queue and matches, newest first by
// the time of leaving, not by id. It ends, without an error, where the schedd's history
// ends: older jobs are rotated away (3 files of 20 MB by default), and a remote query sees
// at most the newest 50,000. Errors are those of Queue.
func (c *Client) History(ctx context.Context, id Identity, constraint string, b HistoryBounds, fn func(Job) error) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	args = append(args, "-backwards", "-json", "-attributes", Projection)
	if constraint != "" {
		args = append(args, "-constraint", constraint)
	}
	if b.Limit > 0 {
		args = append(args, "-limit", strconv.Itoa(b.Limit))
	}
	if b.ScanLimit > 0 {
		args = append(args, "-scanlimit", strconv.Itoa(b.ScanLimit))
	}
	if b.Since != "" {
		args = append(args, "-since", b.Since)
	}
	return c.query(ctx, command{name: "condor_history", args: args, id: id, timeout: c.o.Timeout}, fn)
}
