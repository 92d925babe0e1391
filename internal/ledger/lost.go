package ledger

import (
	"time"
)

// LostRuns returns the newest runs of HTCJobs, or of workflows, all of whose jobs have ended and some of which were
// called lost, if they ended after a time.
func (tx *Tx) LostRuns(kind Kind, after time.Time) ([]Run, error) {
	of := ofHTCJobs
	if kind == Workflows {
		of = `kind = 'workflow'`
	}
	return tx.runsWhere(" with lost jobs", `id IN (SELECT run FROM htcjobs INDEXED BY htcjobs_lost
		WHERE status = 7 AND reason = 'Lost' AND source = 'crosscheck' AND run IS NOT NULL) AND confirmed = 1 AND `+of+newestEnded, string(Submitted), millis(after))
}

// LostDAGs returns the newest DAGs of workflows with nodes that were called lost, if DAGMan goes on or ended after a
// time.
func (tx *Tx) LostDAGs(after time.Time) ([]Run, error) {
	return tx.runsWhere(" of workflows with lost nodes", `id IN (SELECT run FROM nodes INDEXED BY nodes_lost
		WHERE status = 7 AND reason = 'Lost' AND source = 'crosscheck' AND cluster > 0)`+newestEnded, string(Submitted), millis(after))
}

const newestEnded = ` AND state = ? AND (ended = 0 OR ended >= ?)
	AND NOT EXISTS (SELECT 1 FROM runs newer WHERE newer.uid = runs.uid AND newer.attempt > runs.attempt)`

// WaitAgain takes back what was said of the nodes of a DAG of which no job was ever seen, because DAGMan's job was
// called lost.
func (tx *Tx) WaitAgain(uid string, attempt int) (err error) {
	defer wrap(&err, "have nodes of run %s attempt %d wait again", uid, attempt)
	_, err = tx.exec(`UPDATE nodes SET status = 1, reason = '', message = '', source = '', absent = 0
		WHERE run = `+runID+` AND status <> 1 AND cluster = 0 AND reason = 'Lost' AND source = 'crosscheck'`, uid, attempt)
	return err
}
