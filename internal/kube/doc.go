// Package kube is the control loop between HTCJobs in Kubernetes, the ledger and the schedd.
//
//	informer ─> queue ─> sync: gather ─> plan ─> status          (never waits for HTCondor)
//	                             │
//	                             └─> lane: gather ─> plan ─> submit | recover | remove
//
//	receiver ─> Record ──┐
//	                     ├─> observe ─> ledger ─> queue
//	cron ─> Crosscheck ──┘
//
// Two queues hold the keys of HTCJobs. The first is for what is fast: it reads the ledger, decides, and writes
// .status. Whatever needs HTCondor is handed to the second, the lane, whose workers decide again from the ledger
// before they act; a queue never hands one key to two workers, so at most one of them acts for an HTCJob.
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
