// Package lifecycle decides what to do for one HTCJob and what its status says. Both follow from a Situation, which is
// everything known about it: the object, its newest run, and counts of that run's procs. Nothing here does I/O;
// package kube gathers the situation and acts on the decision.
//
//	stage.go   how far the newest attempt has got, and whether another is due
//	plan.go    the next action that needs HTCondor or the ledger
//	status.go  the status: phase, counts, conditions; output.go and logs.go have one condition each
//	events.go  the Events when one status follows another
//	times.go   the deadline of an attempt, and when an ended HTCJob is deleted
//	older.go   cases where the object knows more than the ledger
package lifecycle
