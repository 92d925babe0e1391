package ledger

import (
	"fmt"
	"time"
)

// Acted is what a rule of a workflow has done in an attempt.
type Acted struct {
	Rule    int // in spec.rules, from 0
	At      time.Time
	DAG     int    // the Attempt of the Run that it acted on
	Message string // of the Event about it
	Told    bool   // there was that Event
}

// Acted returns what rules have done, in their order. The run is the attempt's first.
func (tx *Tx) Acted(uid string, attempt int) ([]Acted, error) {
	var all []Acted
	err := tx.query(func(row scanner) error {
		var a Acted
		var at int64
		err := row.Scan(&a.Rule, &at, &a.DAG, &a.Message, &a.Told)
		a.At = fromMillis(at)
		all = append(all, a)
		return err
	}, `SELECT rule, acted, dag, message, told FROM rules WHERE run = `+runID+` ORDER BY rule`, uid, attempt)
	if err != nil {
		return nil, fmt.Errorf("rules of run %s attempt %d: %w", uid, attempt, err)
	}
	return all, nil
}

// SetActed writes what one of them has done.
func (tx *Tx) SetActed(uid string, attempt int, a Acted) error {
	changed, err := tx.exec(`INSERT OR REPLACE INTO rules (run, rule, acted, dag, message, told) SELECT id, ?, ?, ?, ?, ? FROM runs WHERE uid = ? AND attempt = ?`,
		a.Rule, millis(a.At), a.DAG, a.Message, a.Told, uid, attempt)
	if err == nil && changed == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("rule %d of run %s attempt %d: %w", a.Rule, uid, attempt, err)
	}
	return nil
}
