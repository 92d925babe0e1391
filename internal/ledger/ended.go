package ledger

// DropEnded deletes the rows of those attempts of an HTCJob, up to the given one, about which nothing is left to do:
// HTCondor has confirmed how they ended, or they were refused, and their output is here or given up.
func (tx *Tx) DropEnded(uid string, upTo int) (err error) {
	defer wrap(&err, "drop the attempts of %s up to %d", uid, upTo)
	_, err = tx.exec(`DELETE FROM runs WHERE uid = ? AND attempt <= ? AND `+ofHTCJobs+` AND (confirmed = 1 OR state = ?)
		AND (outputDir = '' OR NOT EXISTS (SELECT 1 FROM htcjobs p WHERE p.run = runs.id AND p.jobStatus = 4 AND p.fetched = 0 AND p.run IS NOT NULL))`,
		uid, upTo, string(Refused))
	return err
}

// DropDAGs deletes the DAGs of a workflow before the given one, which were those of so many attempts, unless something
// is left to do about one of them.
func (tx *Tx) DropDAGs(uid string, before, attempts int) (err error) {
	defer wrap(&err, "drop the DAGs of %s before %d", uid, before)
	var open bool
	err = tx.queryRow(
		`SELECT EXISTS (SELECT 1 FROM runs r WHERE uid = ? AND attempt < ? AND (confirmed = 0 OR outputDir <> '' AND state = ?
		AND EXISTS (SELECT 1 FROM htcjobs p WHERE p.run = r.id AND p.fetched = 0 AND p.run IS NOT NULL)))`,
		uid,
		before,
		string(Submitted),
	).Scan(
		&open,
	)
	if err != nil || open {
		return err
	}
	if _, err := tx.exec(
		`UPDATE runs SET earlier = ? + (SELECT earlier FROM runs WHERE uid = ? ORDER BY attempt LIMIT 1) WHERE uid = ? AND attempt = ?`,
		attempts,
		uid,
		uid,
		before,
	); err != nil {
		return err
	}
	_, err = tx.exec(`DELETE FROM runs WHERE uid = ? AND attempt < ?`, uid, before)
	return err
}
