package ledger

import "fmt"

// Orphans lists the objects that vanished many at once, by UID: true for those to be removed nevertheless.
func (tx *Tx) Orphans() (map[string]bool, error) {
	orphans := map[string]bool{}
	err := tx.query(func(row scanner) error {
		var uid string
		var remove bool
		err := row.Scan(&uid, &remove)
		orphans[uid] = remove
		return err
	}, `SELECT uid, remove FROM orphans`)
	if err != nil {
		return nil, fmt.Errorf("list orphans: %w", err)
	}
	return orphans, nil
}

// KeptOrphans counts those that are not to be removed.
func (tx *Tx) KeptOrphans() (n int, err error) {
	if err := tx.queryRow(`SELECT count(*) FROM orphans WHERE remove = 0`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count orphans: %w", err)
	}
	return n, nil
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

func (tx *Tx) setOrphan(statement, uid string) error {
	if _, err := tx.exec(statement, uid); err != nil {
		return fmt.Errorf("orphan %s: %w", uid, err)
	}
	return nil
}
