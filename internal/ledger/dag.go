package ledger

import (
	"encoding/json"
	"time"
)

// OpenDAGs returns the DAGs that were sent and have nodes of which HTCondor has not confirmed the end.
func (tx *Tx) OpenDAGs() ([]Run, error) {
	return tx.runsWhere(
		" of workflows with open nodes",
		`id IN (SELECT id FROM runs INDEXED BY runs_kind WHERE kind = 'workflow') AND state = 'Submitted' AND (
		EXISTS (SELECT 1 FROM nodes p WHERE p.run = runs.id AND p.status = 1 AND p.cluster = 0) OR
		EXISTS (SELECT 1 FROM nodes p INDEXED BY nodes_unconfirmed WHERE p.run = runs.id AND (p.status = 1 OR p.source = 'callback') AND p.cluster > 0))`,
	)
}

// Settled reports whether HTCondor has confirmed the end of every node of a DAG.
func (tx *Tx) Settled(uid string, attempt int) (settled bool, err error) {
	defer wrap(&err, "whether run %s attempt %d is settled", uid, attempt)
	err = tx.queryRow(`SELECT NOT EXISTS (SELECT 1 FROM nodes p WHERE p.run = `+runID+` AND p.status = 1 AND p.cluster = 0)
		AND NOT EXISTS (SELECT 1 FROM nodes p INDEXED BY nodes_unconfirmed WHERE p.run = `+runID+` AND (p.status = 1 OR p.source = 'callback') AND p.cluster > 0)`,
		uid, attempt, uid, attempt).
		Scan(&settled)
	return settled, err
}

// Verdict is what becomes of nodes that no job was ever seen of.
type Verdict struct {
	Status  Status
	Reason  string
	Message string
	Source  string
	At      time.Time
}

// EndWaiting gives a verdict on the first waiting nodes of a DAG, limited in number. It returns how many these were.
func (tx *Tx) EndWaiting(uid string, attempt int, v Verdict, limit int) (int, error) {
	return tx.end(uid, attempt, v, limit, `SELECT p.node FROM nodes p INDEXED BY nodes_waiting
		WHERE p.run = `+runID+` AND p.status = 1 AND p.cluster = 0 ORDER BY p.node LIMIT ?`)
}

// EndFirstWaiting gives a verdict on the first waiting node of each sequence that has not failed, limited in number. It
// returns how many these were. Nodes of all sequences are one more sequence, which has failed if any other has.
func (tx *Tx) EndFirstWaiting(uid string, attempt int, v Verdict, limit int) (int, error) {
	return tx.end(
		uid,
		attempt,
		v,
		limit,
		`SELECT min(p.node) FROM nodes p WHERE p.run = `+runID+` AND p.status = 1 AND p.cluster = 0
		AND NOT EXISTS (SELECT 1 FROM sequences s WHERE s.run = p.run AND s.sequence = p.sequence AND s.failed > 0)
		AND (p.sequence >= 0 OR NOT EXISTS (SELECT 1 FROM nodeTallies t WHERE t.run = p.run AND t.status > 4 AND t.n > 0)
			AND NOT EXISTS (SELECT 1 FROM nodes q WHERE q.run = p.run AND q.status = 1 AND q.cluster = 0 AND q.sequence >= 0))
		GROUP BY p.sequence LIMIT ?`,
	)
}

// end gives a verdict on the nodes of a DAG that a query of its run and a limit chooses.
func (tx *Tx) end(uid string, attempt int, v Verdict, limit int, nodes string) (n int, err error) {
	defer wrap(&err, "end waiting nodes of run %s attempt %d", uid, attempt)
	ended, err := tx.exec(
		`UPDATE nodes SET status = ?, reason = ?, message = ?, source = ?, changed = ? WHERE run = `+runID+` AND node IN (`+nodes+`)`,
		int(v.Status),
		v.Reason,
		v.Message,
		v.Source,
		millis(v.At),
		uid,
		attempt,
		uid,
		attempt,
		limit,
	)
	return int(ended), err
}

// FailedWith reports whether a node of a step has failed with one of these return codes.
func (tx *Tx) FailedWith(uid string, attempt, step int, codes []int32) (is bool, err error) {
	defer wrap(&err, "failed nodes of run %s attempt %d", uid, attempt)
	text, err := json.Marshal(codes)
	if err == nil {
		err = tx.queryRow(
			`SELECT EXISTS (SELECT 1 FROM nodes p INDEXED BY nodes_failed WHERE p.run = `+runID+` AND p.status = 7 AND p.step = ?
			AND p.exitCode IN (SELECT value FROM json_each(?)))`,
			uid,
			attempt,
			step,
			string(text),
		).Scan(
			&is,
		)
	}
	return is, err
}
