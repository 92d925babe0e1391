package ledger

import (
	"encoding/json"
)

// Occasion is one on which a rule of a workflow has a sequence repeat steps.
type Occasion struct {
	Rule     int // in spec.rules, from 0, or NoRule
	Sequence int
	Value    float64 // that led to it
}

// NoRule is in place of that of a sequence that begins because another has failed, as spec.sequences.completions says.
const NoRule = -1

// Occasions returns those of a DAG, none if it repeats nothing, by sequence.
func (tx *Tx) Occasions(uid string, attempt int) (all []Occasion, err error) {
	defer wrap(&err, "occasions of run %s attempt %d", uid, attempt)
	return list(tx, into(func(o *Occasion) []any {
		return []any{&o.Rule, &o.Sequence, &o.Value}
	}), `SELECT rule, sequence, value FROM repeats WHERE run = `+runID+` ORDER BY sequence, rule`, uid, attempt)
}

// Repeats reports whether a DAG repeats steps.
func (tx *Tx) Repeats(uid string, attempt int) (repeats bool, err error) {
	defer wrap(&err, "whether run %s attempt %d repeats", uid, attempt)
	err = tx.queryRow(`SELECT EXISTS (SELECT 1 FROM repeats WHERE run = `+runID+`)`, uid, attempt).Scan(&repeats)
	return repeats, err
}

// Repeat records that a DAG, which has just been inserted with its nodes and what it carries, repeats steps of
// sequences. Its nodes take the place of those that the earlier DAGs from attempt first on have of the same steps and
// sequences: each is there once. These must have ended.
func (tx *Tx) Repeat(r Run, first int, all []Occasion) (err error) {
	defer wrap(&err, "repeat steps in run %s attempt %d", r.UID, r.Attempt)
	triples := make([][3]any, len(all))
	for i, o := range all {
		triples[i] = [3]any{o.Rule, o.Sequence, o.Value}
	}
	text, err := json.Marshal(triples)
	if err != nil {
		return err
	}
	_, err = tx.exec(
		`INSERT INTO repeats (run, rule, sequence, value) SELECT `+runID+`, value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)`,
		r.UID,
		r.Attempt,
		string(text),
	)
	if err != nil {
		return err
	}
	var own int64
	var earlier []int64
	err = tx.query(func(row scanner) error {
		var id int64
		var attempt int
		err := row.Scan(&id, &attempt)
		if attempt == r.Attempt {
			own = id
		} else {
			earlier = append(earlier, id)
		}
		return err
	}, `SELECT id, attempt FROM runs WHERE uid = ? AND attempt >= ? AND attempt <= ?`, r.UID, first, r.Attempt)
	for _, id := range earlier {
		if err == nil {
			err = tx.replace(own, id)
		}
	}
	return err
}

// replace removes from an earlier DAG the nodes whose place those of a later one take, and counts again what is left.
func (tx *Tx) replace(by, run int64) error {
	const replaced = `(SELECT node FROM nodes WHERE run = ? AND step IN (SELECT step FROM steps WHERE run = ?) AND sequence IN (SELECT sequence FROM nodes WHERE run = ?))`
	for _, from := range []string{`results WHERE run = ? AND node`, `written WHERE run = ? AND proc`, `nodes WHERE run = ? AND node`} {
		if _, err := tx.exec(`DELETE FROM `+from+` IN `+replaced, run, run, by, by); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		`UPDATE nodeTallies SET n = 0 WHERE run = ?`,
		`INSERT INTO nodeTallies SELECT run, step, status, jobStatus, count(*) FROM nodes WHERE run = ? GROUP BY step, status, jobStatus
			ON CONFLICT (run, step, status, jobStatus) DO UPDATE SET n = excluded.n`,
		`DELETE FROM sequences WHERE run = ?1 AND sequence NOT IN (SELECT sequence FROM nodes WHERE run = ?1)`,
		`UPDATE sequenceTallies SET n = 0 WHERE run = ?`,
		`INSERT INTO sequenceTallies SELECT run, status, count(*) FROM sequences WHERE run = ? GROUP BY status
			ON CONFLICT (run, status) DO UPDATE SET n = excluded.n`,
	} {
		if _, err := tx.exec(statement, run); err != nil {
			return err
		}
	}
	return nil
}

// Repeated returns how often a rule has had each sequence repeat, in the DAGs from attempt first on.
func (tx *Tx) Repeated(uid string, first, rule int) (times map[int]int, err error) {
	defer wrap(&err, "what rule %d of run %s attempt %d has repeated", rule, uid, first)
	return keyed[int, int](
		tx,
		`SELECT p.sequence, count(*) FROM runs r JOIN repeats p ON p.run = r.id WHERE r.uid = ? AND r.attempt >= ? AND p.rule = ? GROUP BY p.sequence`,
		uid,
		first,
		rule,
	)
}

// SequenceResults calls fn with each result that nodes of a step have under a name, by their sequences, and whether all
// of the sequence has succeeded in that DAG.
func (tx *Tx) SequenceResults(
	uid string,
	attempt, step int,
	name string,
	fn func(o Occasion, succeeded bool),
) (err error) {
	defer wrap(&err, "results %s of run %s attempt %d", name, uid, attempt)
	return tx.query(func(row scanner) error {
		var o Occasion
		var status Status
		err := row.Scan(&o.Sequence, &o.Value, &status)
		fn(o, status == StatusSucceeded)
		return err
	}, `SELECT n.sequence, v.value, s.status FROM metrics m CROSS JOIN results v ON v.run = m.run AND v.metric = m.metric CROSS JOIN nodes n ON n.run = v.run AND n.node = v.node
		CROSS JOIN sequences s ON s.run = n.run AND s.sequence = n.sequence WHERE m.run = `+runID+` AND m.step = ? AND m.name = ? ORDER BY n.node`, uid, attempt, step, name)
}
