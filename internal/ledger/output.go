package ledger

// OutputCounts describes how much of a run's output was fetched.
type OutputCounts struct {
	Completed  int    // procs that ran to their end, as HTCondor reports
	Waiting    int    // those of them whose output is still to be fetched
	GivenUp    int    // those whose output can no longer be fetched
	Incomplete int    // those whose output lacks files
	Stderr     string // of one of those that lack files
}

// Output counts the procs of a run by the state of their output; ErrNotFound if there is no such run.
func (tx *Tx) Output(uid string, attempt int) (c OutputCounts, err error) {
	defer wrap(&err, "count output of run %s attempt %d", uid, attempt)
	err = tx.queryRow(`SELECT coalesce((SELECT sum(n) FROM tallies WHERE run = r.id AND jobStatus = 4), 0),
			(SELECT count(*) FROM htcjobs WHERE run = r.id AND jobStatus = 4 AND fetched = 0),
			(SELECT count(*) FROM htcjobs WHERE run = r.id AND fetched = 2),
			(SELECT count(*) FROM htcjobs WHERE run = r.id AND fetched = 3),
			coalesce((SELECT stderr FROM htcjobs WHERE run = r.id AND fetched = 3 LIMIT 1), '')
		FROM runs r WHERE r.uid = ? AND r.attempt = ?`, uid, attempt).Scan(&c.Completed, &c.Waiting, &c.GivenUp, &c.Incomplete, &c.Stderr)
	return c, err
}

// UnfetchedRuns returns the runs of HTCJobs with completed procs whose output is still to be fetched and has a
// destination.
func (tx *Tx) UnfetchedRuns() (runs []Run, err error) {
	defer wrap(&err, "runs with unfetched output")
	return list(tx, scanRun, `SELECT `+runColumns+` FROM runs WHERE `+ofHTCJobs+` AND outputDir <> '' AND EXISTS
		(SELECT 1 FROM htcjobs WHERE run = runs.id AND jobStatus = 4 AND fetched = 0) ORDER BY id`)
}
