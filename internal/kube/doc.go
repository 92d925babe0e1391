// Package kube is the control loop between HTCJobs in Kubernetes, the ledger and the schedd.
//
//	informer ─> queue ─> sync: gather ─> plan ─> status          (never waits for HTCondor)
//	                             │
//	                             └─> lane: gather ─> plan ─> submit | ask | remove
//
//	receiver ─> Record ──┐
//	                     ├─> observe ─> ledger ─> queue
//	cron ─> Crosscheck ──┘
//
// Queues hold the keys of HTCJobs. One is for what is fast: it reads the ledger, decides, and writes .status; what comes
// without news has one beside it. Whatever needs HTCondor is handed to the lane, whose workers decide again from the
// ledger before they act. The lane has a queue and workers of its own for submissions, questions and removals; at most
// one worker acts for an HTCJob at a time. Checks after callbacks, fetches and the Pods of spec.logsPod have queues, too.
// In every queue namespaces take turns. The workers of one schedd (desks.go) serve no other, and everything that is asked
// about a run goes to its home (place.go).
//
// The ledger, not the informer's cache, decides whether something was sent: a cache may be seconds old.
//
// # States of a run that are hard
//
//	                   InsertRun            condor_submit             UpdateRun+InsertProcs
//	nothing ─────────────────────> Intent ───────────────> (cluster) ─────────────────────> Submitted
//	                                 │  ▲                      │
//	   killed or failed anywhere ────┘  │                      │ found by its tag
//	                                    │                      ▼
//	   recover asks queue and history:  │                 whole: adopted, Submitted
//	     nothing, twice, apart in time ─┘ sent again      half-spooled: waited for, then removed, then as "nothing"
//
// A cluster that was sent but not recorded is thus found by asking; nothing is ever sent because a row is missing
// or a command failed.
package kube
