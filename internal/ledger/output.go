package ledger

import (
	"database/sql"
	"errors"
	"fmt"
)

// OutputCounts describes how much of a run's output was fetched.
type OutputCounts struct {
	Completed  int    // procs that ran to their end, as HTCondor reports
	Waiting    int    // those of them whose output is still to be fetched
	GivenUp    int    // those whose output can no longer be fetched
	Incomplete int    // those whose output lacks files
	Stderr     string // of one of those that lack files
}

// Output counts the procs of a run by the state of their output; ErrNotFound if there is no such run.
func (tx *Tx) Output(uid string, attempt int) (OutputCounts, error) {
	var c OutputCounts
	err := tx.queryRow(`SELECT coalesce((SELECT sum(n) FROM tallies WHERE run = r.id AND jobStatus = 4), 0),
			(SELECT count(*) FROM htcjobs WHERE run = r.id AND jobStatus = 4 AND fetched = 0),
			(SELECT count(*) FROM htcjobs WHERE run = r.id AND fetched = 2),
			(SELECT count(*) FROM htcjobs WHERE run = r.id AND fetched = 3),
			coalesce((SELECT stderr FROM htcjobs WHERE run = r.id AND fetched = 3 LIMIT 1), '')
		FROM runs r WHERE r.uid = ? AND r.attempt = ?`, uid, attempt).Scan(&c.Completed, &c.Waiting, &c.GivenUp, &c.Incomplete, &c.Stderr)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return OutputCounts{}, fmt.Errorf("count output of run %s attempt %d: %w", uid, attempt, err)
	}
	return c, nil
}

// UnfetchedRuns returns the runs of HTCJobs with completed procs whose output is still to be fetched and has a
// destination.
func (tx *Tx) UnfetchedRuns() ([]Run, error) {
	var runs []Run
	err := tx.query(func(row scanner) error {
		r, err := scanRun(row)
		runs = append(runs, r)
		return err
	}, `SELECT `+runColumns+` FROM runs WHERE `+ofHTCJobs+` AND outputDir <> '' AND EXISTS
		(SELECT 1 FROM htcjobs WHERE run = runs.id AND jobStatus = 4 AND fetched = 0) ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("runs with unfetched output: %w", err)
	}
	return runs, nil
}
