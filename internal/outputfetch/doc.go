// Package outputfetch brings the output of completed jobs here, and lets the jobs leave the queue.
//
//	queue ─> choose ─> book ─> transfer ─────────> commit ─────────────> release
//	          rows     room    a directory of      one transaction:      the job goes
//	                           this fetch alone    fetched, in its place  to the history
//
// A fetch is for a number of procs of one run, and a step of it is a file. Its keys, those of HTCJobs, have a queue and
// workers of their own, so that nothing waits for it, and namespaces take turns (package fairqueue).
//
// Until its release a job waits in the queue with its output: whatever is broken off before is done again, and what a
// broken-off fetch has left is removed at the next start. Broken off after the transaction, the job is released when
// htcd looks at what waits there from before (takeup.go).
//
// A job whose files the schedd fails to send holds up no other: it is asked for again after growing pauses (pauses.go).
// Only what the schedd says it does not have is given up (giveup.go).
//
// The package knows rows, the schedd and the store. It knows no HTCJob: what users are to hear goes to an Observer.
package outputfetch
