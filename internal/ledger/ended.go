package ledger

import "fmt"

// DropEnded deletes the rows of those attempts of an HTCJob, up to the given one, about which nothing is left to do: HTCondor has confirmed how they ended, or they were
// refused, and their output is here or given up.
func (tx *Tx) DropEnded(uid string, upTo int) error {
	_, err := tx.exec(`DELETE FROM runs WHERE uid = ? AND attempt <= ? AND `+ofHTCJobs+` AND (confirmed = 1 OR state = ?)
		AND (outputDir = '' OR NOT EXISTS (SELECT 1 FROM htcjobs p WHERE p.run = runs.id AND p.jobStatus = 4 AND p.fetched = 0 AND p.run IS NOT NULL))`,
		uid, upTo, string(Refused))
	if err != nil {
		return fmt.Errorf("drop the attempts of %s up to %d: %w", uid, upTo, err)
	}
	return nil
}
