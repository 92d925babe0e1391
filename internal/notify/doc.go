// Package notify carries the news that a job ended: Send posts it from the
// node where the job ran, the receiver takes it and hands it to a Recorder. It
// knows nothing of HTCondor, Kubernetes or the ledger.
//
// # The event
//
// A CloudEvent 1.0 posted to /cloudevents, structured (Content-Type
// application/cloudevents+json) or binary (ce-* headers and a JSON body), with
// the data
//
//	{"name": "zero", "namespace": "default", "jobid": "884426.0", "retcode": 0}
//
// retcode is an integer from 0 to 255, as number or as string: what a shell
// has in $?. A job that a signal ended has 128 and the signal's number there;
// anything outside that range came from no shell and is refused. Members that
// are not known are passed over, so that senders may say more one day. The
// event's type and source may be anything: the address and the token say what
// is meant, and what is refused for a label would only leave a status stale.
//
// # The answers
//
//	204  the Recorder has it, durably: the sender may forget it
//	400  no such event can be; the answer says why
//	401  no token
//	403  not the token of that job's run
//	404  no such job
//	405, 413, 415  not POST, too large, not a CloudEvent in JSON
//	503  not now, with Retry-After: it could not be written, or too many came
//	     at once
//
// Every answer is one line of plain text. A sender tries again after 503, 429
// and every other 5xx, and never after another 4xx.
//
// # Whom we trust with what
//
// Whoever can reach the port may knock: jobs run on nodes of other people's,
// behind addresses that nobody lists. So nothing counts but the token.
//
//   - A token is 256 random bits, made for one run and known to that run's jobs,
//     to which it travels as a file of mode 0600. htcd keeps its SHA-256 hash
//     only; the file of the ledger lets nobody forge a callback. A fast hash is
//     enough, since there is nothing to guess. Match compares in constant time.
//   - It is good for the procs of its run and for nothing else. Any proc of the
//     run can speak for another: they are one user's, and share the script.
//   - A callback is a claim about how a job ended. What follows from it is the
//     Recorder's to say, and HTCondor's word stands above it.
//   - Without a token the answer is 401 before the body is read, whatever it
//     says. With a wrong one, 403 and 404 differ, so a stranger can learn that a
//     job exists: that is no secret, condor_q tells it to the whole pool. Nothing
//     else about the job is in any answer.
//   - The limits (size of body and header, time to send them, events in hand at
//     once) hold before the token is looked at, because looking costs a
//     transaction. A slow client occupies its own connection and nothing more:
//     a place among the events in hand is taken after its body has come. One
//     that floods takes its share of the places, never all of them.
//   - Over plain HTTP everybody on the way can read the token and use it, until
//     the run has ended, for that run. Across networks that are not one's own,
//     give Serve a listener with TLS, or put TLS in front.
package notify
