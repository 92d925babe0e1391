// Package schedd is the only package that talks to HTCondor, by its tools. The conversation, in order:
//
//	Client.Submit   condor_submit -spool -terse job.sub, in a directory that package submit has written
//	Client.Queue    condor_q: what is still there
//	Client.History  condor_history: what left
//	Client.Remove   condor_rm
//	HoldIdle, ReleaseHeld   condor_hold, condor_release
//
// Every command runs with a deadline, in its own process group and environment (command.go), and ends in a condor.Job or
// in a *condor.Error whose Kind says whether a retry can help.
//
// The package decides nothing about HTCJobs: when to submit, what "absent" means and what to do about a half-spooled
// cluster is up to its callers.
package schedd
