package ledger

// Orphans lists the objects that vanished many at once, by UID: true for those to be removed nevertheless.
func (tx *Tx) Orphans() (orphans map[string]bool, err error) {
	defer wrap(&err, "list orphans")
	return keyed[string, bool](tx, `SELECT uid, remove FROM orphans`)
}

// KeptOrphans counts those that are not to be removed.
func (tx *Tx) KeptOrphans() (n int, err error) {
	defer wrap(&err, "count orphans")
	err = tx.queryRow(`SELECT count(*) FROM orphans WHERE remove = 0`).Scan(&n)
	return n, err
}

// KeepOrphan records that nothing of that UID may be removed until an administrator asks for it; if one has asked
// already, that stands.
func (tx *Tx) KeepOrphan(uid string) error {
	return tx.setOrphan(`INSERT INTO orphans (uid) VALUES (?) ON CONFLICT (uid) DO NOTHING`, uid)
}

// RemoveOrphan records that an administrator has asked for its removal.
func (tx *Tx) RemoveOrphan(uid string) error {
	return tx.setOrphan(`UPDATE orphans SET remove = 1 WHERE uid = ?`, uid)
}

// ForgetOrphan drops a record: the object exists again, or its runs are gone.
func (tx *Tx) ForgetOrphan(uid string) error {
	return tx.setOrphan(`DELETE FROM orphans WHERE uid = ?`, uid)
}

func (tx *Tx) setOrphan(statement, uid string) (err error) {
	defer wrap(&err, "orphan %s", uid)
	_, err = tx.exec(statement, uid)
	return err
}
