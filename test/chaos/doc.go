// Package chaos applies many HTCJobs while htcd, the schedds, the callbacks and the Secret are disturbed at random,
// htcd's volume is nearly full, an older ledger is restored or all of it is lost, the schedd shows an empty queue for a
// while, the common Secret has another account, and somebody else has a job with a huge HoldReason; with -feed, htcd
// feed is killed, stopped, frozen and shows an older spool. Some HTCJobs are in a namespace with an account of its own,
// and some go to one of two schedds (site.go). Then it repairs everything, waits until nothing moves any more, and
// compares every HTCJob with what HTCondor says, and what was fetched with what the jobs left.
//
// One seed determines what happens, and in which order:
//
//	seed ─ plan.go ─> trials (shape.go) and disturbances
//	                     │
//	                  play.go      does them to the lab, each at its time
//	                     │
//	                  evidence.go  afterwards: objects, ledger, staged directories, condor_q, condor_history
//	                     │
//	                  judge.go     what is doubled, lost, wrong or left over; pure
//	                     │
//	                  table.go     per shape
//
// The files workflow*.go do the same for HTCWorkflows, with the disturbances above that do not damage htcd's volume,
// and with DAGMan being killed, too. Their judge compares node by node.
//
// The judges read HTCondor's ads themselves and share no code with htcd, whose reading is being tested.
package chaos
