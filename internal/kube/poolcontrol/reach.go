package poolcontrol

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// reached is a schedd of a pool and what is known of it.
type reached struct {
	at schedd.Endpoint
	backend.Reachability
}

// endpoints returns the schedds that a pool names; none: those that the site itself uses.
func (c *Controller) endpoints(spec v1alpha1.HTCPoolSpec) []schedd.Endpoint {
	collector := spec.Collector
	if collector == c.Collector {
		collector = ""
	}
	var all []schedd.Endpoint
	for _, name := range (pool.Pool{Spec: spec}).Schedds() {
		all = append(all, schedd.Endpoint{Collector: collector, Schedd: name})
	}
	return all
}

// reach returns what is known of a pool's schedds.
func (c *Controller) reach(spec v1alpha1.HTCPoolSpec) []reached {
	known := c.Schedds.Known()
	var all []reached
	for _, at := range c.endpoints(spec) {
		all = append(all, reached{at, known[at]})
	}
	if len(all) > 0 {
		return all
	}
	for at, r := range known {
		if r.Usual || at == (schedd.Endpoint{}) && r.Down {
			all = append(all, reached{at, r})
		}
	}
	slices.SortFunc(all, func(a, b reached) int { return cmp.Compare(a.at.String(), b.at.String()) })
	return all
}

// ask asks those schedds of the pools whether they answer that nothing else has asked lately.
func (c *Controller) ask(ctx context.Context, _ bool) {
	var asking errgroup.Group
	done := map[schedd.Endpoint]bool{}
	for _, p := range c.All() {
		named := c.endpoints(p.Spec)
		if len(named) == 0 {
			named = []schedd.Endpoint{{}}
		}
		known := c.Schedds.Known()
		for _, at := range named {
			r := known[at]
			if done[at] || r.Asked && c.Now().Sub(r.At) < askAgain {
				continue
			}
			done[at] = true
			asking.Go(func() error { c.askOne(ctx, at); return nil })
		}
	}
	_ = asking.Wait() // what the schedds say is recorded by Schedds
}

// askOne asks one schedd, the usual one if it has no name. A site without an account that works cannot ask.
func (c *Controller) askOne(ctx context.Context, at schedd.Endpoint) {
	id, err := c.Credentials.Any(ctx, at)
	if err != nil {
		return
	}
	if at.Schedd == "" {
		name, err := c.Schedds.ScheddName(ctx, id)
		if err != nil {
			return
		}
		at.Schedd = name
		if r := c.Schedds.Known()[at]; r.Asked && c.Now().Sub(r.At) < askAgain {
			return
		}
		id = id.At(at)
	}
	_, _ = c.Schedds.Ping(ctx, id, schedd.Reading)
}
