// Package notify reports the end of a job: Send posts it from the node where the
// job ran, the receiver accepts it and hands it to a Recorder. It knows nothing
// of HTCondor, Kubernetes or the ledger.
//
// # The event
//
// A CloudEvent 1.0 posted to /cloudevents, structured (Content-Type
// application/cloudevents+json) or binary (ce-* headers and a JSON body), with
// the data
//
//	{"name": "zero", "namespace": "default", "jobid": "884426.0", "retcode": 1, "stderr": "the last 4 KiB of what a failed one wrote"}
//
// and, from a job of a workflow's DAG, whose name then is the workflow's,
//
//	"node": 17, "exit": 0
//
// where exit is what HTCondor sees in place of retcode.
//
// A job may tell its start, too: with "started": true in the place of retcode, and once, since nobody depends on it.
// One whose script has ended, and which HTCondor is about to hold because it cannot bring back what the script leaves,
// has "held": true there: that is no end, and only stderr is kept of it.
//
// retcode is an integer from 0 to 255, as number or as string: what a shell
// has in $?. A job that a signal ended has 128 and the signal's number there;
// anything outside that range came from no shell and is refused. Unknown members
// are ignored, so that senders may add some. The event's type and source may be
// anything: the address and the token identify it, and refusing it for a label
// would only leave a status stale.
//
// # The answers
//
//	204  recorded durably: the sender may forget it
//	400  not a possible event; the answer says why
//	401  nothing that could be a token
//	403  not the token of that job's run
//	404  no such job
//	405, 413, 415  not POST, too large, not a CloudEvent in JSON
//	503  not now, with Retry-After: it could not be written, or too many arrived
//	     at once
//
// Every answer is one line of plain text. A sender tries again after 503, 429
// and every other 5xx, and never after another 4xx.
//
// # Trust
//
// Anybody who can reach the port may try: jobs run on other people's nodes,
// behind addresses that nobody lists. So only the token counts.
//
//   - A token is 256 random bits, made for one run and known to that run's jobs,
//     to which it travels as a file of mode 0600. htcd keeps only its SHA-256
//     hash, so the ledger's file lets nobody forge a callback. A fast hash is
//     enough, since there is nothing to guess. Match compares in constant time.
//   - It is valid only for the procs of its run. Any proc of the run can speak
//     for another: they belong to one user, and share the script.
//   - A callback is a claim about how a job ended. The Recorder decides what
//     follows from it, and HTCondor's word overrides it.
//   - Without what could be a token the answer is 401 before the body is read,
//     whatever it contains. With a wrong one, 403 and 404 differ, so a stranger can learn
//     that a job exists: that is no secret, condor_q shows it to the whole pool.
//     No answer contains anything else about the job.
//   - The limits (connections, size of body and header, time to send them,
//     concurrent events) apply before the token is checked, because the check
//     costs a transaction. A slow client occupies only its own connection: it
//     takes a place among the concurrent events after its body has arrived. One
//     that floods takes its share of the places, never all of them.
//   - 2,048 connections are open at once. A further one closes that of the client
//     with most waiting ones that has waited longest (Limit): a client has all that
//     nobody else wants, as a site whose nodes share one address needs, and no
//     number of connections keeps out a client with fewer. An event that came
//     whole keeps its connection. With TLS 2,048 slow ones take 220 MB at most.
//   - A connection that brings no request, such as one whose TLS handshake fails,
//     is counted and not logged.
//   - Over plain HTTP an eavesdropper can read the token and use it for that run
//     until it has ended. Across untrusted networks, give the server a listener
//     with TLS, or put TLS in front.
package notify
