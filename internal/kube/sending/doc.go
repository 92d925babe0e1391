// Package sending sends runs, looks for them and removes them: what the controllers of HTCJobs and of HTCWorkflows do
// alike.
//
//	send.go    condor_submit for a run whose intent is in the ledger, and what its failure means
//	stage.go   the files of a submission
//	search.go  what the schedd has under a run's tag, and whose it is
//	record.go  what the ledger has of a run that was sent, refused, withdrawn or stopped, or whose object is gone
//	remove.go  removal, until a successful answer shows nothing alive
//	explain.go what an error means for the user
//	wait.go    errors that say when to go on
//	line.go    which workers an action waits for
//
// What only one kind records is written along, in the same transaction. The decisions are those of package recovery.
package sending
