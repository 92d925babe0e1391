// Package crosscheck compares what the ledger has with what HTCondor says, and brings the ledger in line.
//
//	rows (rows.go) ──┐
//	                 ├─> comparison ──> observations ──> the rule ──> changed rows
//	ads (ask.go) ────┘                        ▲
//	                        callback ─────────┘
//
// A Checker asks condor_q, and condor_history about what the queue does not show. Whatever a source says of a proc is an
// Observation, and one pure rule (rule.go) decides what it changes; callbacks go through the same rule. A question that
// failed changes nothing of what it was about.
package crosscheck
