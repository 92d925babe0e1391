// Package trial gives each test a namespace in the running lab, and helpers to apply HTCJobs, wait for them and ask
// HTCondor about them.
package trial
