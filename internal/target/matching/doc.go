// Package matching says why jobs wait for a slot.
//
//	ledger ──> runs with idle jobs, one job of each ──> condor_q: what it asks for, if it has been idle for a minute ─┐
//	                                                    condor_status: the slots ────────────────────────────────────┼─> Judge ──> Verdict
//	                                                    condor_q -better-analyze: one kind of jobs per schedd ───────┘
//
// Watch asks once a minute, and about all runs together; -better-analyze, which costs most, about one kind of jobs at
// each schedd in that time, and its answer serves all jobs that are alike. Judge is pure. What cannot be found out is a
// Verdict of its own, and changes nothing else.
package matching
