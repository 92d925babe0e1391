package kube

import (
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

// Queues lists the queues of Waiting.
var Queues = []string{"changed", "routine", "submit", "ask", "remove", "check", "fetch", "logs"}

// Waiting is how many HTCJobs wait in each queue for a worker: to be looked at, for a command of HTCondor, for their
// output to be fetched, or for the Pod of spec.logsPod. Those that failed and come again later do not count.
func (c *Controller) Waiting() map[string]int {
	n := map[string]int{"changed": c.queue.Len(), "routine": c.routine.Len()}
	for e, d := range c.actors {
		n[[actionClasses]string{"submit", "ask", "remove"}[e]] = d.Waiting()
	}
	n["check"], n["fetch"], n["logs"] = c.checkers.Waiting(), c.fetchers.Waiting(), c.logs.Len()
	return n
}

// Backend is what is known of a schedd.
type Backend struct {
	Place    schedd.Place
	Down     bool // it did not answer when it was last asked
	Answered bool // it has answered since htcd began
	Usual    bool // the site, not a user, has named it
	Asked    time.Time
}

// Backends lists the schedds that were asked anything. One that never answered may be somebody's slip of the pen.
func (c *Controller) Backends() []Backend {
	c.backends.mu.Lock()
	defer c.backends.mu.Unlock()
	all := make([]Backend, 0, len(c.backends.m))
	for place, b := range c.backends.m {
		all = append(all, Backend{Place: place, Down: b.down, Answered: !b.answered.IsZero(), Usual: b.usual, Asked: b.at})
	}
	return all
}
