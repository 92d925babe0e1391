// Package orphans decides about HTCJobs that the ledger has and the apiserver has not.
//
// An HTCJob whose finalizer was taken away by hand takes its jobs and its output with it. One that vanished because an older
// state of etcd was put back looks the same: what tells the two apart is how many of them there are. More than a few, and more
// than a share, that vanished without a deletion having been seen are kept until somebody says that they are to be removed.
package orphans
