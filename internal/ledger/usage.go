package ledger

// Usage calls fn for each proc, from one on, that the run itself sent, in order, with what it used; empty if that is
// not known. limit: the most rows, 0: all.
func (tx *Tx) Usage(uid string, attempt, from, limit int, fn func(proc int, usage string)) (err error) {
	defer wrap(&err, "usage of run %s attempt %d", uid, attempt)
	if limit <= 0 {
		limit = -1
	}
	err = tx.query(func(row scanner) error {
		var proc int
		var usage string
		err := row.Scan(&proc, &usage)
		fn(proc, usage)
		return err
	}, `SELECT proc, usage FROM htcjobs WHERE run = `+runID+` AND proc >= ? + 0 AND source <> '`+SourceCarried+`' ORDER BY proc LIMIT ? + 0`, uid, attempt, from, limit)
	return err
}
