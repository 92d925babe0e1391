// Package schedd is the only package that talks to HTCondor. The conversation, in order:
//
//	Render, Stage   describe.go, submitline.go, allow.go, wrapper.sh
//	                the sandbox of a run, written into a directory of its own
//	Client.Submit   condor_submit -spool -terse job.sub
//	Client.Queue    condor_q: what is still there
//	Client.History  condor_history: what left
//	Client.Remove   condor_rm
//	HoldIdle, ReleaseHeld   condor_hold, condor_release
//
// Every command runs with a deadline, in its own process group and environment (command.go), and ends in a Job or in an
// *Error whose Kind says whether a retry can help. Pure methods of Job (job.go) decide what a job's ad means.
//
// The package decides nothing about HTCJobs: when to submit, what "absent" means and what to do about a half-spooled
// cluster is up to its callers.
package schedd
