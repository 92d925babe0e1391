package ledger

import (
	"errors"
	"fmt"
)

// Result is one number that the script of a node has measured. It must be finite.
type Result struct {
	Name  string
	Value float64
}

// Metric is a name under which nodes of a step have results.
type Metric struct {
	Number int // among those of its DAG, from 0
	Step   Step
	Name   string
}

// MaxMetrics is how many metrics a DAG has at most: each is a line of the status, and takes time to sum up.
const MaxMetrics = 50

// SetResults stores results of a node. With replace they take the place of earlier ones of the same names; without,
// these stay. It returns the names that the DAG has no room for.
func (tx *Tx) SetResults(n Node, all []Result, replace bool) (left []string, err error) {
	var run int64
	if err := tx.queryRow(`SELECT id FROM runs WHERE uid = ? AND attempt = ?`, n.UID, n.Attempt).
		Scan(&run); err != nil {
		return nil, fmt.Errorf("results of node %d of run %s attempt %d: %w", n.Number, n.UID, n.Attempt, err)
	}
	conflict := `DO NOTHING`
	if replace {
		conflict = `DO UPDATE SET value = excluded.value WHERE value <> excluded.value`
	}
	for _, r := range all {
		number, err := tx.metric(run, n.Step, r.Name)
		if err == nil && number < 0 {
			left = append(left, r.Name)
			continue
		}
		if err == nil {
			_, err = tx.exec(
				`INSERT INTO results (run, metric, node, value) VALUES (?, ?, ?, ?) ON CONFLICT (run, metric, node) `+conflict,
				run,
				number,
				n.Number,
				r.Value,
			)
		}
		if err != nil {
			return nil, fmt.Errorf("store results of node %d of run %s attempt %d: %w", n.Number, n.UID, n.Attempt, err)
		}
	}
	return left, nil
}

// metric returns the number of a metric, a new one if need be, and -1 if there is no room for one more.
func (tx *Tx) metric(run int64, step int, name string) (number int, err error) {
	err = tx.queryRow(`SELECT metric FROM metrics WHERE run = ? AND step = ? AND name = ?`, run, step, name).
		Scan(&number)
	if !errors.Is(err, ErrNotFound) {
		return number, err
	}
	if err := tx.queryRow(`SELECT count(*) FROM metrics WHERE run = ?`, run).Scan(&number); err != nil {
		return 0, err
	}
	if number >= MaxMetrics {
		return -1, nil
	}
	_, err = tx.exec(`INSERT INTO metrics (run, metric, step, name) VALUES (?, ?, ?, ?)`, run, number, step, name)
	return number, err
}

// Metrics lists what nodes of a DAG have results of, ordered by step and name.
func (tx *Tx) Metrics(uid string, attempt int) (all []Metric, err error) {
	defer wrap(&err, "metrics of run %s attempt %d", uid, attempt)
	return list(tx, into(func(m *Metric) []any {
		return []any{&m.Number, &m.Name, &m.Step.Number, &m.Step.Name, &m.Step.Deferred}
	}), `SELECT m.metric, m.name, s.step, s.name, s.deferred FROM metrics m JOIN steps s ON s.run = m.run AND s.step = m.step
		WHERE m.run = `+runID+` ORDER BY m.step, m.name`, uid, attempt)
}

// DropResults deletes results of a workflow's DAGs, limited in number, and returns how many these were. Deleting
// millions with their runs would keep others from writing for seconds.
func (tx *Tx) DropResults(uid string, limit int) (n int, err error) {
	var run, metric int64
	err = tx.queryRow(`SELECT m.run, m.metric FROM metrics m WHERE m.run IN (SELECT id FROM runs WHERE uid = ?)
		AND EXISTS (SELECT 1 FROM results r WHERE r.run = m.run AND r.metric = m.metric) LIMIT 1`, uid).Scan(&run, &metric)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	var dropped int64
	if err == nil {
		dropped, err = tx.exec(`DELETE FROM results WHERE run = ? AND metric = ? AND node IN
			(SELECT node FROM results WHERE run = ? AND metric = ? ORDER BY node LIMIT ?)`, run, metric, run, metric, limit)
	}
	if err != nil {
		return 0, fmt.Errorf("drop results of %s: %w", uid, err)
	}
	return int(dropped), nil
}

// Results returns the values of a metric, in no particular order. It reads a row for each.
func (tx *Tx) Results(uid string, attempt, metric int) (all []float64, err error) {
	defer wrap(&err, "results of run %s attempt %d", uid, attempt)
	return list(
		tx,
		one[float64],
		`SELECT value FROM results WHERE run = `+runID+` AND metric = ?`,
		uid,
		attempt,
		metric,
	)
}
