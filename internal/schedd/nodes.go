package schedd

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

//go:embed multinode.sh
var multinodeBody string

// mostNodes is the largest number of nodes of a job.
const mostNodes = 256

// checkNodes refuses what a job of several nodes cannot be. HTCondor makes one such job of all procs of a cluster, of which only
// the first has a return code (23.9).
func (d Description) checkNodes() error {
	one := "make several HTCJobs of one job each"
	switch {
	case d.Nodes == 0:
		return nil
	case d.Nodes < 2 || d.Nodes > mostNodes:
		return Refusal("spec.nodes: found %d, expected 2 to %d; a job of one node is one without nodes", d.Nodes, mostNodes)
	case d.Queue > 1:
		return Refusal("spec.nodes: found %d jobs, expected 1: HTCondor would make a single job of them all; %s", d.Queue, one)
	case d.Parallelism > 0:
		return Refusal("spec.nodes: found parallelism, too, which is for many jobs: leave it out")
	case d.Checkpoint != nil:
		return Refusal("spec.nodes: found checkpoint, too: HTCondor keeps no checkpoint of a job of several nodes; leave it out")
	case d.Interactive > 0 || d.KeepOnFailure > 0:
		return Refusal("spec.nodes: found interactive or keepOnFailure, too, which are for the container of a single node: leave it out")
	case d.Sender == "":
		return Refusal("spec.nodes: this htcd has no program to send along (--ship-sender)")
	}
	return nil
}

// universe returns the submit lines that say what kind of job it is.
func (d Description) universe() []option {
	if d.Nodes == 0 {
		return []option{{"universe", "vanilla"}}
	}
	return []option{{"universe", "parallel"}, {"machine_count", fmt.Sprint(d.Nodes)}}
}

// closed keeps a job of several nodes from the schedd's files and from its own ad, which condor_submit opens to it: it could
// read what belongs to other jobs of the account, and take the tag of another HTCJob (tried on 23.9).
func (d Description) closed() []option {
	if d.Nodes == 0 {
		return nil
	}
	return []option{{"My.WantIOProxy", "false"}}
}

// dedicated begins the attribute with which a machine says whose jobs of several nodes it takes: the schedd's name follows.
const dedicated = "DedicatedScheduler@"

// TakesNodes returns an error of kind Refused if the pool has machines, but none for jobs of several nodes of that schedd.
// Without it, such a job would wait for ever.
func (c *Client) TakesNodes(ctx context.Context, id Identity) error {
	target, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	args := []string{"-json", "-attributes", "Name,DedicatedScheduler", "-constraint", notPart}
	if pool := c.pool(id); pool != "" {
		args = append(args, "-pool", pool)
	}
	machines := 0
	var schedulers []string
	err = c.run(ctx, command{name: "condor_status", args: args, id: id, timeout: c.o.Timeout, read: func(r io.Reader) error {
		return classad.ReadJSON(r, func(ad classad.Ad) error {
			machines++
			if name, is := ad.Get("DedicatedScheduler").Str(); is && !slices.Contains(schedulers, name) {
				schedulers = append(schedulers, name)
			}
			return nil
		})
	}})
	if err != nil || machines == 0 {
		return err
	}
	name := ""
	if len(target) > 1 {
		name = target[1]
	}
	return takesNodes(name, schedulers)
}

// takesNodes says whether these dedicated schedulers of a pool's machines are that of the schedd; any is if its name is not known.
func takesNodes(schedd string, schedulers []string) error {
	ours := func(name string) bool { return schedd == "" || strings.EqualFold(name, dedicated+schedd) }
	if slices.ContainsFunc(schedulers, ours) {
		return nil
	}
	return Refusal(
		"spec.nodes: no machine of the pool takes jobs of several nodes from this schedd (DedicatedScheduler = \"%s%s\"): name an HTCPool whose machines do, or ask the pool's administrator; within one machine, spec.resources.cpus gives more cores",
		dedicated,
		schedd,
	)
}
