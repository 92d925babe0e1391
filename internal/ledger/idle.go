package ledger

import (
	"errors"
)

// RunsIdle returns the open runs of which procs or nodes wait in HTCondor for a slot.
func (tx *Tx) RunsIdle() ([]Run, error) {
	return tx.runsWhere(" with idle jobs", `confirmed = 0 AND ended = 0 AND state = 'Submitted' AND stop = '' AND (
		kind = '' AND EXISTS (SELECT 1 FROM tallies t WHERE t.run = runs.id AND t.status = 1 AND t.jobStatus = 1 AND t.n > 0)
		OR EXISTS (SELECT 1 FROM nodeTallies t WHERE t.run = runs.id AND t.status = 1 AND t.jobStatus = 1 AND t.n > 0))`)
}

// FirstIdle returns the id of the first job of a run, or of its nodes, that waits in HTCondor for a slot; "" if there
// is none.
func (tx *Tx) FirstIdle(r Run) (jobID string, err error) {
	defer wrap(&err, "first idle job of run %s attempt %d", r.UID, r.Attempt)
	text := `SELECT p.jobId FROM runs r JOIN htcjobs p ON p.run = r.id WHERE r.uid = ? AND r.attempt = ? AND p.status = 1 AND p.jobStatus = 1 ORDER BY p.proc LIMIT 1`
	if r.Kind == Workflows {
		text = `SELECT p.cluster || '.' || ` + nodeProc + ` FROM runs r JOIN nodes p ON p.run = r.id WHERE r.uid = ? AND r.attempt = ? AND p.status = 1 AND p.jobStatus = 1 ORDER BY p.node LIMIT 1`
	}
	err = tx.queryRow(text, r.UID, r.Attempt).Scan(&jobID)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return jobID, err
}
