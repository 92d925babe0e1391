// Package crosscheck compares the ledger with what HTCondor says and brings the ledger into line.
//
//	rows (rows.go) ──┐
//	                 ├─> comparison ──> observations ──> the rule ──> changed rows
//	ads (ask.go) ────┘                        ▲
//	                        callback ─────────┘
//
// A Driver makes the passes (driver.go), here over runs and in package nodes over the nodes of workflows. The Checker
// of runs asks condor_q, then condor_history about what the queue does not show. Most passes ask only for what has
// changed since the one before (recent.go), which coverage.go decides. Whatever a source says about a proc is an
// Observation, and one pure rule (rule.go) decides what it changes; callbacks go through the same rule. A failed
// question changes nothing.
package crosscheck
