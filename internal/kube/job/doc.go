// Package job is the control loop between HTCJobs in Kubernetes, the ledger and the schedd.
//
//	informer ─> queue ─> sync: gather ─> plan ─> status          (never waits for HTCondor)
//	                             │
//	                             └─> actions: gather ─> plan ─> submit | ask | remove
//
//	receiver ─> Record ──┐
//	                     ├─> observe ─> ledger ─> queue
//	cron ─> Crosscheck ──┘
//	                                      │
//	                                      └─> outputfetch: the output of ended jobs ─> queue
//
// Queues, back-off and locks are those of all kinds (package reconciler). Checks after callbacks, fetches (package
// fetch) and the Pods of spec.logsPod have queues, too. All questions about a run go to its target (package backend,
// which knows nothing of HTCJobs).
//
// The ledger, not the informer's cache, decides whether something was sent: a cache may be seconds old.
//
// # Interrupted submissions
//
//	                   InsertRun            condor_submit             UpdateRun+InsertProcs
//	nothing ─────────────────────> Intent ───────────────> (cluster) ─────────────────────> Submitted
//	                                 │  ▲                      │
//	   killed or failed anywhere ────┘  │                      │ found by its tag
//	                                    │                      ▼
//	   recover asks queue and history:  │                 any proc spooled: adopted, Submitted
//	     nothing, twice, apart in time ─┘ sent again      none is: waited for, then removed, then as "nothing"
//
// A cluster that was sent but not recorded is thus found by asking; a missing row or a failed command alone never
// causes a submission.
package job
