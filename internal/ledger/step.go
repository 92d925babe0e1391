package ledger

// Step is a step of a workflow that a DAG runs.
type Step struct {
	Number    int // in spec.steps, from 0; finally comes after the last
	Name      string
	Deferred  bool   // only HTCondor decides that one of its jobs has failed: it may run it again
	Effective string // JSON of v1alpha1.Effective: what its jobs ask for by their pool; empty: not known
	MayFail   int    // so many of its nodes in each sequence, without that having failed; it is written, and not read
}

// Steps returns the steps of a DAG in the order of their numbers.
func (tx *Tx) Steps(uid string, attempt int) (steps []Step, err error) {
	defer wrap(&err, "steps of run %s attempt %d", uid, attempt)
	return list(tx, into(func(s *Step) []any {
		return []any{&s.Number, &s.Name, &s.Deferred, &s.Effective}
	}), `SELECT step, name, deferred, effective FROM steps WHERE run = `+runID+` ORDER BY step`, uid, attempt)
}
