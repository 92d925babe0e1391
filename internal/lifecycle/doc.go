// Package lifecycle decides what is to be done for one HTCJob and what its status says. Both follow from a Situation, which is
// everything known about it: the object, its newest run, and counts of that run's procs. Nothing here asks or changes anything;
// package kube gathers the situation and acts on the decision.
//
//	plan.go    what HTCondor, or the ledger, is needed for next
//	status.go  the status: phase, counts, conditions; output.go and logs.go have one condition each
//	events.go  what the user is told when one status follows another
//	times.go   when an attempt must have ended, and when an ended HTCJob is deleted
//	older.go   where the object knows more than the ledger
package lifecycle
