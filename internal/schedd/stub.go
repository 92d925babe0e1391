package schedd

import "context"

// Submit sends the sandbox that Stage wrote into dir and returns the new cluster.
// An error may carry a cluster, see Error.Cluster. Exit 0 is not the end of
// spooling: for about a second the jobs are held with code 16.
func (c *Client) Submit(ctx context.Context, id Identity, dir string) (Cluster, error) {
	return Cluster{}, nil
}

// Queue calls fn for every job in the schedd's queue that matches, whoever
// owns it. Only a nil error is an answer: whatever fn saw before an error proves
// nothing about what it did not see. An error of fn ends the query and is returned.
func (c *Client) Queue(ctx context.Context, id Identity, constraint string, fn func(Job) error) error {
	return nil
}

// HistoryBounds keep a history query cheap.
type HistoryBounds struct {
	Limit     int    // stop after so many matches; 0: no limit
	ScanLimit int    // look at no more than so many ads; 0: no limit
	Since     string // stop at this ad: "cluster.proc", or an expression; the ad itself is not shown
}

// History calls fn for every job that left the queue and matches, newest first by
// the time of leaving, not by id.
func (c *Client) History(ctx context.Context, id Identity, constraint string, b HistoryBounds, fn func(Job) error) error {
	return nil
}

// Remove removes the jobs that match. That none matched is no error.
func (c *Client) Remove(ctx context.Context, id Identity, constraint, reason string) error {
	return nil
}

// ScheddName is the name by which the schedd that the commands talk to is known.
func (c *Client) ScheddName(ctx context.Context, id Identity) (string, error) { return "", nil }
