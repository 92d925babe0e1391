// Command bench measures htcd in the running lab, each figure beside its floor: the same work done by the raw tools, by
// hand, in the same run and in turn, so that the ratio holds whatever else the machine does.
//
// It runs inside the lab's root as root (make bench), stops the lab's htcd, and starts one of its own with its own
// ledger for each row. Its jobs never start: their requirements are false.
//
//	bench [-row NAME] [-growth] [-results DIR]
//	bench -soak MINUTES
package main
