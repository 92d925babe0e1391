package kube

import (
	"htc.cern.ch/htcd/internal/backend"
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
	n["check"], n["fetch"], n["logs"] = c.checkers.Waiting(), c.fetcher.Waiting(), c.logs.Len()
	return n
}

// Backends is what is known of the schedds that were asked anything.
func (c *Controller) Backends() map[schedd.Endpoint]backend.Reachability { return c.answering.Known() }
