// Package workflow is the control loop between HTCWorkflows in Kubernetes, the ledger and the schedd. It does for a
// workflow's DAGs what package job does for the attempts of an HTCJob, by the same engine (package reconciler) and with
// the same guarantees (packages sending and recovery), and neither knows of the other.
//
//	informer ─> queue ─> sync: gather ─> plan ─> status          (never waits for HTCondor)
//	                             │
//	                             └─> actions: gather ─> plan ─> submit | recover | stop | settle | remove
//
//	receiver ─> Record ──┐
//	                     ├─> package nodes ─> ledger ─> queue
//	cron ─> Crosscheck ──┘
//	                                  │
//	                                  └─> fetches: the output of DAGs that have ended ─> pushes of artifacts (package outputpush) ─> queue
//
// # Levels
//
// A workflow is sent as one DAG after another: a step with pairing All that comes after steps of sequences begins a new
// level (package graph), as what it depends on is known only then; spec.finally is the last DAG. Each is a run of the
// ledger, whose attempt is its number among all DAGs that were ever sent for the object; its rows of nodes are written
// with the intent.
//
//	level 0 ──ended──> level 1 ──ended──> ... ──> finally ──> over
//	   │                                             ▲
//	   └── stopped, or nothing left to do ───────────┘
//
// Between two levels, DAGs of the same level may repeat steps of some sequences, as rules say (repeat.go), or begin
// others in place of those that have failed (further.go).
//
// Which level comes next follows from the rows alone, so it does not matter when htcd was killed.
package workflow
