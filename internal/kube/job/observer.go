package job

import (
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Observer is notified of what happens, for metrics. Its methods are called by several goroutines and must not block.
type Observer interface {
	// Repaired: so much that was unnoticed or interrupted was put right.
	Repaired(kind crosscheck.Repair, times int)
	// Passed: a pass over the runs at an endpoint, a cross-check or a refresh, has ended.
	Passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error)
	// Unread: the ads of so many jobs could not be fetched or read.
	Unread(jobs int)
	// Used: jobs of a namespace, whose ends HTCondor has told, had the cores that they had asked for so long, in
	// seconds of one core.
	Used(namespace string, coreSeconds int64)
	// Fetched: the output of so many procs has been fetched.
	Fetched(procs int, bytes int64)
	// GaveUp: the output of so many procs cannot be fetched.
	GaveUp(procs int)
	// FetchFailed: a fetch has failed and will be tried again.
	FetchFailed(reason string)
	reconciler.PushMetrics
}

// Waiting returns how many HTCJobs wait in each queue for a worker: for a sync, for an HTCondor command, for their
// output to be fetched, for an artifact to be pushed, or for the Pod of spec.logsPod. Those in a back-off after a
// failure do not count.
func (c *Controller) Waiting() map[string]int {
	n := c.engine.Waiting()
	n["check"], n["fetch"], n["push"], n["logs"] = c.checkers.Waiting(), c.fetcher.Waiting(), c.pusher.Waiting(), c.logs.Len()
	return n
}

// Keeper returns what keeps the Secrets that runs were sent with.
func (c *Controller) Keeper() *backend.Keeper { return c.keeper }

// Backends returns what is known about the schedds that have been asked anything.
func (c *Controller) Backends() map[schedd.Endpoint]backend.Reachability { return c.Answering.Known() }
