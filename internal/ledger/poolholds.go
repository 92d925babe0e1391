package ledger

// heldByPool is true for a proc that htcd holds because its pool is suspended. It is written out, so that the index
// htcjobs_pool_holds serves.
const heldByPool = `p.reason = 'PoolSuspended' AND p.run IS NOT NULL AND p.status = 1 AND p.jobStatus = 5`

// nodeHeldByPool is the same for a node, and nodes_pool_holds.
const nodeHeldByPool = `p.reason = 'PoolSuspended' AND p.status = 1 AND p.jobStatus = 5`

// HeldByPools returns how many procs and nodes of a pool are on hold because it is suspended, by namespace. It reads a
// row for each.
func (tx *Tx) HeldByPools(pool string) (all map[string]int, err error) {
	defer wrap(&err, "count procs held by pool %s", pool)
	all = map[string]int{}
	err = tx.query(func(row scanner) error {
		var namespace string
		var n int
		err := row.Scan(&namespace, &n)
		all[namespace] += n
		return err
	}, `SELECT r.namespace, count(*) FROM htcjobs p JOIN runs r ON r.id = p.run WHERE `+heldByPool+` AND r.pool = ? AND r.`+ofHTCJobs+` GROUP BY 1
		UNION ALL SELECT r.namespace, count(*) FROM nodes p INDEXED BY nodes_pool_holds JOIN runs r ON r.id = p.run WHERE `+nodeHeldByPool+` AND r.pool = ? GROUP BY 1`, pool, pool)
	return all, err
}

// RunsHeldByPools returns the runs of which procs, nodes or the factory are on hold because their pool is, or was,
// suspended. Of a factory its reason says so, which then begins with these words.
func (tx *Tx) RunsHeldByPools(words string) ([]Run, error) {
	return tx.runsWhere(" held by pools", `id IN (SELECT p.run FROM htcjobs p WHERE `+heldByPool+`
		UNION SELECT p.run FROM nodes p INDEXED BY nodes_pool_holds WHERE `+nodeHeldByPool+`
		UNION SELECT id FROM runs WHERE confirmed = 0 AND ended = 0 AND state = 'Submitted'
			AND reason = '`+FactoryPaused+`' AND substr(message, 1, length(?1)) = ?1)`, words)
}

// RunsToHold returns the open runs of a pool of which procs or nodes may wait for a slot, or whose DAGMan or factory
// may send further ones.
func (tx *Tx) RunsToHold(pool string) ([]Run, error) {
	return tx.runsWhere(" of pool "+pool, `pool = ? AND confirmed = 0 AND ended = 0 AND state = 'Submitted' AND (
		EXISTS (SELECT 1 FROM tallies t WHERE t.run = runs.id AND t.status = 1 AND (t.jobStatus IN (0, 1) OR kind = 'workflow' AND t.jobStatus = 2) AND t.n > 0)
		OR factory > 0 AND reason <> '`+FactoryPaused+`' AND max(procs, jobs) - unmade > (SELECT coalesce(sum(n), 0) FROM tallies t WHERE t.run = runs.id)
		OR EXISTS (SELECT 1 FROM nodeTallies t WHERE t.run = runs.id AND t.status = 1 AND t.jobStatus = 1 AND t.n > 0))`, pool)
}
