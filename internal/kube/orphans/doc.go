// Package orphans decides about objects, HTCJobs or HTCWorkflows, that the ledger has but the apiserver does not.
//
// If an object's finalizer is removed by hand, its jobs and output go with it. One that vanished because an older state
// of etcd was restored looks the same: only their number distinguishes the two. If more than a few, and more than a
// share of all, vanish without an observed deletion, they are kept until somebody asks for their removal.
package orphans
