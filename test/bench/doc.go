// Command bench measures htcd in the running lab, each figure beside its floor: the same work done with the raw tools,
// in the same run and in turn, so that the ratio holds whatever else the machine does.
//
// It runs as root inside the lab's root (make bench), stops the lab's htcd, and starts its own with its own ledger for
// each row. Except in the rows workflow, burst and states its jobs never start: their requirements are false.
//
//	bench [-row NAME] [-growth | -size N] [-results DIR]
//	bench -soak MINUTES
package main
