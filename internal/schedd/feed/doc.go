// Package feed mirrors the jobs of a schedd from the files that it writes, and answers questions about them over HTTP.
//
//	job_queue.log ─> Queue ──┐
//	                         ├─> Mirror ─> Server ── mutual TLS ──> Client ─> schedd.Client.From ─> cross-check
//	history       ─> History ┘
//
// The server runs on the schedd's host (htcd feed) and only reads. It takes the questions that condor_q and
// condor_history take, a constraint and a list of attributes, and answers in the JSON that they print. It evaluates
// constraints itself (constraint.go), and refuses one that it cannot evaluate. It also streams the numbers of the jobs
// that have changed.
//
// A Mark is a place in job_queue.log: the birth date of the queue, the file's sequence number, and an offset. Nothing
// else is remembered, so a mark outlives a restart of the server, as long as the schedd has not written the file anew.
//
// The schedd flushes job_queue.log when something has to last: a submission, a hold, an end. What it writes without
// that, when a run begins, or ends with the job back in the queue, waits in its buffer for the next change that has to.
//
// A mirror can be behind, and it shows only the jobs that its administrator allows. So whoever asks it must not
// conclude from the absence of a job that there is none.
package feed
