package ledger

// Counts returns how many procs of a run are in which state. It reads a few rows of the table tallies, which triggers
// maintain, and so costs the same for a run of 1 and of 100,000. No such run is all zeros.
func (tx *Tx) Counts(uid string, attempt int) (c Counts, err error) {
	defer wrap(&err, "count procs of run %s attempt %d", uid, attempt)
	err = tx.query(func(row scanner) error {
		var status Status
		var jobStatus, n int
		if err := row.Scan(&status, &jobStatus, &n); err != nil {
			return err
		}
		c.add(status, jobStatus, n)
		return nil
	}, `SELECT status, jobStatus, n FROM tallies WHERE run = `+runID+`
		UNION ALL SELECT 7, 0, unmade FROM runs WHERE uid = ? AND attempt = ?
		UNION ALL SELECT 1, -1, max(max(r.procs, r.jobs) - r.unmade - (SELECT coalesce(sum(n), 0) FROM tallies WHERE run = r.id), 0) FROM runs r
		WHERE r.uid = ? AND r.attempt = ? AND r.factory > 0 AND r.state = ?`, uid, attempt, uid, attempt, uid, attempt, string(Submitted))
	return c, err
}

// CountReason returns how many procs that a run has sent have failed for this reason. It reads a row for every one that
// failed.
func (tx *Tx) CountReason(uid string, attempt int, reason string) (n int, err error) {
	defer wrap(&err, "count procs of run %s attempt %d by reason", uid, attempt)
	err = tx.queryRow(
		`SELECT count(*) + (SELECT coalesce(sum(unmade), 0) FROM runs WHERE uid = ?1 AND attempt = ?2 AND stop = ?3)
		FROM htcjobs WHERE run = (SELECT id FROM runs WHERE uid = ?1 AND attempt = ?2) AND status = 7 AND reason = ?3 AND source <> '`+SourceCarried+`'`,
		uid,
		attempt,
		reason,
	).Scan(
		&n,
	)
	return n, err
}

// HTCondor's JobStatus codes that are counted separately.
const (
	notMade         = -1
	jobIdle         = 1
	jobRunning      = 2
	jobHeld         = 5
	jobTransferring = 6
	jobSuspended    = 7
)

func (c *Counts) add(status Status, jobStatus, n int) {
	switch status {
	case StatusSucceeded:
		c.Succeeded += n
	case StatusFailed:
		c.Failed += n
	case StatusOpen:
		c.Active += n
		switch jobStatus {
		case notMade:
			c.Waiting += n
		case jobIdle:
			c.Idle += n
		case jobRunning, jobTransferring, jobSuspended: // these three hold a slot
			c.Running += n
		case jobHeld:
			c.Held += n
		}
	}
}
