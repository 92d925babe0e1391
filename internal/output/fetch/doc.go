// Package fetch fetches the output of completed jobs and lets the jobs leave the queue.
//
//	queue ─> choose ─> book ─> transfer ─────────> commit ─────────────> release
//	          rows     room    a directory of      one transaction:      the job goes
//	                           this fetch alone    fetched, in its place  to the history
//
// A fetch covers some procs of one run; each of its steps is a file. Its keys, those of HTCJobs, have their own queue
// and workers, so that nothing waits for it, and namespaces take turns (package fairqueue).
//
// Until its release a job waits in the queue with its output: anything interrupted earlier is done again, and the
// remains of an interrupted fetch are removed at the next start. After an interruption between transaction and release,
// htcd releases the job when it looks for jobs that still wait (takeup.go).
//
// A job whose files the schedd fails to send delays no other: it is tried again after growing pauses (pauses.go). Only
// files that the schedd says it does not have are given up (giveup.go).
//
// The package knows rows, the schedd and the store, but no HTCJob: messages for users go to an Observer.
package fetch
