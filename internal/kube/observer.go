package kube

import (
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/schedd"
)

// Observer hears what happens, so that somebody can count it. Its fields may be nil; none may wait for anything.
type Observer struct {
	// Repaired: something was put right that went on unseen, or was broken off.
	Repaired func(crosscheck.Repair)
	// Passed: one pass over the runs at an endpoint, a cross-check or a refresh, has ended.
	Passed func(pass string, endpoint schedd.Endpoint, took time.Duration, err error)
	// Unread: the ads of so many jobs could not be had or read.
	Unread func(jobs int)
	// Fetched: the output of so many procs is here.
	Fetched func(procs int, bytes int64)
	// GaveUp: the output of so many procs cannot be had.
	GaveUp func(procs int)
	// FetchFailed: a fetch has failed and is tried again.
	FetchFailed func(reason string)
}

func (o Observer) repaired(kind crosscheck.Repair) {
	if o.Repaired != nil {
		o.Repaired(kind)
	}
}

func (o Observer) passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error) {
	if o.Passed != nil {
		o.Passed(pass, endpoint, took, err)
	}
}

func (o Observer) unread(jobs int) {
	if o.Unread != nil {
		o.Unread(jobs)
	}
}

func (o Observer) fetched(procs int, bytes int64) {
	if o.Fetched != nil {
		o.Fetched(procs, bytes)
	}
}

func (o Observer) gaveUp(procs int) {
	if o.GaveUp != nil {
		o.GaveUp(procs)
	}
}

func (o Observer) fetchFailed(reason string) {
	if o.FetchFailed != nil {
		o.FetchFailed(reason)
	}
}

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
