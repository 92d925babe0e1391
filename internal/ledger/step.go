package ledger

import "fmt"

// Step is a step of a workflow that a DAG runs.
type Step struct {
	Number    int // in spec.steps, from 0; finally comes after the last
	Name      string
	Deferred  bool   // only HTCondor decides that one of its jobs has failed: it may run it again
	Effective string // JSON of v1alpha1.Effective: what its jobs ask for by their pool; empty: not known
	MayFail   int    // so many of its nodes in each sequence, without that having failed; it is written, and not read
}

// Steps returns the steps of a DAG in the order of their numbers.
func (tx *Tx) Steps(uid string, attempt int) ([]Step, error) {
	var steps []Step
	err := tx.query(func(row scanner) error {
		var s Step
		err := row.Scan(&s.Number, &s.Name, &s.Deferred, &s.Effective)
		steps = append(steps, s)
		return err
	}, `SELECT step, name, deferred, effective FROM steps WHERE run = `+runID+` ORDER BY step`, uid, attempt)
	if err != nil {
		return nil, fmt.Errorf("steps of run %s attempt %d: %w", uid, attempt, err)
	}
	return steps, nil
}
