// Package kueue has HTCJobs and HTCWorkflows wait for quota of Kueue: those that name one of its queues in the label
// kueue.x-k8s.io/queue-name.
//
//	HTCJob ──> Workload ──> Kueue admits it ──> the HTCJob enters the line of its pool, and is sent
//	               │                  │
//	               │                  └─> evicted: its jobs are removed, the quota is given back, and it waits again
//	               └─ its jobs end: reclaimablePods, one by one; at last Finished
//
// A Workload says what an HTCJob needs: as many pods as it has jobs, with their cpus, memory and GPUs; no pod is ever
// made of them. There is one for each thing that is run, so an edited spec or a rerun waits in the queue as a new
// HTCJob would. It belongs to the HTCJob, and goes with it. An HTCWorkflow is an HTCJob of as many jobs as may be in
// HTCondor at a time.
//
//	decide.go    what Kueue has said, and what it is told next: pure
//	workload.go  the Workload of an HTCJob, and what is read of one
//	client.go    the Workloads in the apiserver
//	watch.go     whether Kueue's API is there, and its news
//	elsewhere.go HTCJobs that Kueue sends to other clusters (MultiKueue)
//
// One that Kueue has brought from another cluster has come with its Workload, and makes none.
//
// Only the Workload API is used, v1beta2 where it is served and v1beta1 elsewhere, of which nothing is needed in which
// they differ. The fields of HTCJobs that people write, spec.suspend among them, are left alone: the gate is in the
// decision (lifecycle.Quota).
//
// While it is unknown what Kueue says, nothing is sent and nothing is stopped.
package kueue
