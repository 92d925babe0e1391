package schedd

import (
	"context"
	"io"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// dedicated begins the attribute with which a machine says whose jobs of several nodes it takes: the schedd's name
// follows.
const dedicated = "DedicatedScheduler@"

// TakesNodes returns an error of kind Refused if the pool has machines, but none for jobs of several nodes of that
// schedd. Without it, such a job would wait for ever.
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
	err = c.run(
		ctx,
		command{name: "condor_status", args: args, id: id, timeout: c.o.Timeout, read: func(r io.Reader) error {
			return classad.ReadJSON(r, func(ad classad.Ad) error {
				machines++
				if name, is := ad.Get("DedicatedScheduler").Str(); is && !slices.Contains(schedulers, name) {
					schedulers = append(schedulers, name)
				}
				return nil
			})
		}},
	)
	if err != nil || machines == 0 {
		return err
	}
	name := ""
	if len(target) > 1 {
		name = target[1]
	}
	return takesNodes(name, schedulers)
}

// takesNodes says whether these dedicated schedulers of a pool's machines are that of the schedd; any is if its name is
// not known.
func takesNodes(schedd string, schedulers []string) error {
	ours := func(name string) bool { return schedd == "" || strings.EqualFold(name, dedicated+schedd) }
	if slices.ContainsFunc(schedulers, ours) {
		return nil
	}
	return condor.Refusal(
		"spec.nodes: no machine of the pool takes jobs of several nodes from this schedd (DedicatedScheduler = \"%s%s\"): name an HTCPool whose machines do, or ask the pool's administrator; within one machine, spec.resources.cpus gives more cores",
		dedicated,
		schedd,
	)
}
