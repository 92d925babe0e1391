// Package nodes follows the jobs of workflows' DAGs, which DAGMan sends at the schedd's host. It brings their rows in
// the ledger into line with what HTCondor says and what the jobs report themselves.
//
//	known rows (rows.go) ──┐
//	                       ├─> comparison ──> words ──> the rule (rule.go) ──> changed rows
//	ads (ask.go) ──────────┘                    ▲
//	                         callback ──────────┘
//
// It differs from package crosscheck, whose rule it applies and whose Driver makes its passes, in this: nobody knows a
// node's cluster before HTCondor or its callback shows it. So the jobs are asked for by the tags in their ads, and a
// node of which no job was seen waits, however often HTCondor is asked, as long as its DAG goes on. Once the DAG has
// ended, such a node is futile, lost or done (ended.go). Most passes ask only for what has changed since the one before
// (recent.go), which crosscheck.Coverage decides.
package nodes
