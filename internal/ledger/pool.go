package ledger

// KeepPoolSpec keeps the spec, JSON, of a pool that runs are sent with, under its hash.
func (tx *Tx) KeepPoolSpec(hash, spec string) (err error) {
	defer wrap(&err, "keep pool spec %s", hash)
	_, err = tx.exec(`INSERT INTO poolSpecs (hash, spec) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING`, hash, spec)
	return err
}

// PoolSpec returns the spec with that hash, or ErrNotFound.
func (tx *Tx) PoolSpec(hash string) (spec string, err error) {
	defer wrap(&err, "pool spec %s", hash)
	err = tx.queryRow(`SELECT spec FROM poolSpecs WHERE hash = ?`, hash).Scan(&spec)
	return spec, err
}

// DropPoolSpecs deletes the specs that no run was sent with.
func (tx *Tx) DropPoolSpecs() (err error) {
	defer wrap(&err, "drop pool specs")
	_, err = tx.exec(`DELETE FROM poolSpecs WHERE hash NOT IN (SELECT poolSpec FROM runs)`)
	return err
}
