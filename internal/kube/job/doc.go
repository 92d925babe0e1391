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
// Queues hold the keys of HTCJobs. One is for the fast work: it reads the ledger, decides, and writes .status; a second one
// does the same for HTCJobs without news. Whatever needs HTCondor goes to the action queues (actions.go), whose workers
// decide again from the ledger before they act. Submissions, questions and removals each have their own queue and workers;
// at most one worker acts on an HTCJob at a time. Checks after callbacks, fetches (package outputfetch) and the Pods of
// spec.logsPod have queues, too.
// In every queue namespaces take turns, and the workers of one schedd serve no other (package fairqueue). All questions
// about a run go to its target (package backend, which knows nothing of HTCJobs).
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
// A cluster that was sent but not recorded is thus found by asking; a missing row or a failed command alone never causes
// a submission.
package job
