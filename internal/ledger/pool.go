package ledger

import (
	"database/sql"
	"errors"
	"fmt"
)

// KeepPoolSpec keeps the spec, JSON, of a pool that runs are sent with, under its hash.
func (tx *Tx) KeepPoolSpec(hash, spec string) error {
	if _, err := tx.exec(`INSERT INTO poolSpecs (hash, spec) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING`, hash, spec); err != nil {
		return fmt.Errorf("keep pool spec %s: %w", hash, err)
	}
	return nil
}

// PoolSpec returns the spec with that hash, or ErrNotFound.
func (tx *Tx) PoolSpec(hash string) (spec string, err error) {
	err = tx.queryRow(`SELECT spec FROM poolSpecs WHERE hash = ?`, hash).Scan(&spec)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("pool spec %s: %w", hash, err)
	}
	return spec, nil
}

// DropPoolSpecs deletes the specs that no run was sent with.
func (tx *Tx) DropPoolSpecs() error {
	if _, err := tx.exec(`DELETE FROM poolSpecs WHERE hash NOT IN (SELECT poolSpec FROM runs)`); err != nil {
		return fmt.Errorf("drop pool specs: %w", err)
	}
	return nil
}
