package schedd

import (
	"context"
	"fmt"
	"strconv"
)

// SetMaxJobs changes DAG.MaxJobs of a DAG that is in the queue; 0 is no limit. DAGMan reads it every few seconds, and removes nothing. The
// second attribute is for dagman.sh: a DAGMan that is started again overwrites its own. It is not an error if the DAG is not there any more.
func (c *Client) SetMaxJobs(ctx context.Context, id Identity, t Tag, cluster, n int) error {
	_, err := c.edit(ctx, id, fmt.Sprintf("ClusterId == %d && %s", cluster, t.Constraint()), attrMaxJobs, strconv.Itoa(n), "DAGMan_MaxJobs", strconv.Itoa(n))
	return err
}
