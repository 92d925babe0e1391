// Package multinode runs in the containers of a job of several nodes. HTCondor starts the job's wrapper on each node,
// and the wrapper starts Run there in place of the script:
//
//	node 0: Run ── the script                       node 1: Run ── the script
//	         │└── mpirun ── Start node1 ── "start" ──────> │└── what mpirun starts there
//	         └<──── "join", what the script prints, its return code ──┘
//
// All scripts begin once every node has joined. The first that fails ends all of them, and so does the end of that of
// node 0, whose return code is the job's.
//
// The nodes find and know one another by a key that this execution of the job alone has: node 0 listens at one of a few
// ports that follow from it, and both ends of each connection prove that they have it (TLS 1.3 with a certificate made
// from the key).
package multinode
