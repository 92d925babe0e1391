// Package schedd is the only package that talks to HTCondor, by its tools. The conversation, in order:
//
//	Client.Submit    condor_submit -spool -terse job.sub, in a directory that package submit has written
//	Client.Query     condor_q: what is still there, of jobs, nodes and factories; condor_history: what left
//	Client.Transfer  condor_transfer_data: the output of what has ended
//	Client.Change    condor_rm, condor_hold, condor_release, condor_qedit
//	Client.Ping      condor_ping: whether the schedd answers, and as whom
//
// A Query and a Change are values, and say by a condor.Constraint which jobs they are for: a new question, or a new
// change, adds no method to those who pass it on. Nobody above this package writes ClassAd expressions.
//
// Every command runs with a deadline, in its own process group and environment (command.go), and ends in a condor.Job
// or in a *condor.Error whose Kind says whether a retry can help.
//
// The package decides nothing about HTCJobs: when to submit, what "absent" means and what to do about a half-spooled
// cluster is up to its callers.
package schedd
