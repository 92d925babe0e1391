package ledger

import "fmt"

// heldByPool is true for a proc that htcd holds because its pool is suspended. It is written out, so that the index
// htcjobs_pool_holds serves.
const heldByPool = `p.reason = 'PoolSuspended' AND p.run IS NOT NULL AND p.status = 1 AND p.jobStatus = 5`

// HeldByPools returns how many procs of a pool are on hold because it is suspended. It reads a row for each.
func (tx *Tx) HeldByPools(pool string) (int, error) {
	var n int
	err := tx.queryRow(`SELECT count(*) FROM htcjobs p JOIN runs r ON r.id = p.run WHERE `+heldByPool+` AND r.pool = ? AND r.`+ofHTCJobs, pool).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count procs held by pool %s: %w", pool, err)
	}
	return n, nil
}

// RunsHeldByPools returns the runs of which procs are on hold because their pool is, or was, suspended.
func (tx *Tx) RunsHeldByPools() ([]Run, error) {
	return tx.runsWhere(" held by pools", ofHTCJobs+` AND id IN (SELECT DISTINCT p.run FROM htcjobs p WHERE `+heldByPool+`)`)
}

// RunsToHold returns the open runs of a pool of which procs may wait for a slot.
func (tx *Tx) RunsToHold(pool string) ([]Run, error) {
	return tx.runsWhere(" of pool "+pool, ofHTCJobs+` AND pool = ? AND confirmed = 0 AND ended = 0 AND state = 'Submitted'
		AND EXISTS (SELECT 1 FROM tallies t WHERE t.run = runs.id AND t.status = 1 AND t.jobStatus IN (0, 1) AND t.n > 0)`, pool)
}
