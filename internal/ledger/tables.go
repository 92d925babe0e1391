package ledger

import "fmt"

// SetTables adds tables to a workflow's run, which must be in the ledger, by their names. It has none yet.
func (tx *Tx) SetTables(uid string, attempt int, tables map[string]Items) error {
	for name, table := range tables {
		for i, block := range table.blocks {
			err := tx.change(
				`INSERT INTO tables (run, name, first, n, texts) SELECT id, ?, ?, ?, ? FROM runs WHERE uid = ? AND attempt = ?`,
				name,
				i*perBlock,
				min(perBlock, table.n-i*perBlock),
				block,
				uid,
				attempt,
			)
			if err != nil {
				return fmt.Errorf("table %s of run %s attempt %d: %w", name, uid, attempt, err)
			}
		}
	}
	return nil
}

// Tables returns those of a run by their names; none if it has none.
func (tx *Tx) Tables(uid string, attempt int) (all map[string][]string, err error) {
	defer wrap(&err, "tables of run %s attempt %d", uid, attempt)
	return tx.texts(`SELECT name, texts FROM tables WHERE run = `+runID+` ORDER BY name, first`, uid, attempt)
}

// TableRows returns how many rows each of them has.
func (tx *Tx) TableRows(uid string, attempt int) (all map[string]int, err error) {
	defer wrap(&err, "tables of run %s attempt %d", uid, attempt)
	return keyed[string, int](tx, `SELECT name, sum(n) FROM tables WHERE run = `+runID+` GROUP BY name`, uid, attempt)
}
