package ledger

import (
	"encoding/json"
	"fmt"
)

// SourceCarried is the source of a node that does not run again, as it has succeeded in an earlier attempt.
const SourceCarried = "carried"

// Carried is a node of a new DAG that does not run again.
type Carried struct {
	Number int // in the new DAG
	From   int // attempt of the run in which it has succeeded
	Node   int // its number there
}

// CarryNodes makes nodes of a DAG, which has just been inserted, what they have become in earlier DAGs of the same
// workflow, with their results and what has been pushed of them to where the new DAG pushes, too. Their output is here.
// Its destinations must have been set. Those that a factory has made have no job id there: it would need a proc.
// ErrNotFound if one of them is not there, or has not succeeded.
func (tx *Tx) CarryNodes(r Run, nodes []Carried) error {
	for from := 0; from < len(nodes); from += nodesAtOnce {
		if err := tx.carry(r, nodes[from:min(from+nodesAtOnce, len(nodes))]); err != nil {
			return fmt.Errorf("carry nodes over to run %s attempt %d: %w", r.UID, r.Attempt, err)
		}
	}
	return nil
}

func (tx *Tx) carry(r Run, some []Carried) error {
	triples := make([][3]int, len(some))
	for i, c := range some {
		triples[i] = [3]int{c.Number, c.From, c.Node}
	}
	text, err := json.Marshal(triples)
	if err != nil {
		return err
	}
	for _, c := range some {
		err := tx.change(
			`UPDATE nodes SET status = o.status, jobStatus = o.jobStatus,
			cluster = iif((SELECT factory FROM runs WHERE id = o.run) > 0, 0, o.cluster), exitCode = o.exitCode, reason = o.reason,
			message = o.message, source = '`+SourceCarried+`', changed = o.changed, checked = o.checked, fetched = ? FROM nodes o
			WHERE nodes.run = `+runID+` AND nodes.node = ? AND o.run = `+runID+` AND o.node = ? AND o.status = 4`,
			int(IsFetched),
			r.UID,
			r.Attempt,
			c.Number,
			r.UID,
			c.From,
			c.Node,
		)
		if err != nil {
			return err
		}
	}
	// CROSS JOIN keeps the order, in which each table is read by its key.
	const earlier = `json_each(?) j CROSS JOIN runs q ON q.uid = ? AND q.attempt = j.value ->> 1 CROSS JOIN nodes p ON p.run = q.id AND p.node = j.value ->> 2`
	if err := tx.carryPushes(r, string(text), earlier); err != nil {
		return err
	}
	return tx.carryResults(r, string(text), earlier)
}

func (tx *Tx) carryPushes(r Run, triples, earlier string) error {
	_, err := tx.exec(`INSERT INTO written (run, number, proc, size, digest, push, note)
		SELECT n.run, d.number, n.node, w.size, w.digest, w.push, w.note FROM `+earlier+`
		CROSS JOIN written w ON w.run = p.run AND w.proc = p.node AND w.push = 2 CROSS JOIN destinations o ON o.run = w.run AND o.number = w.number
		CROSS JOIN nodes n ON n.run = `+runID+` AND n.node = j.value ->> 0 CROSS JOIN destinations d ON d.run = n.run AND d.number = n.step AND d.artifact = o.artifact`,
		triples, r.UID, r.UID, r.Attempt)
	return err
}

func (tx *Tx) carryResults(r Run, triples, earlier string) error {
	type result struct {
		node Node
		Result
	}
	var all []result
	err := tx.query(func(row scanner) error {
		v := result{node: Node{Proc: Proc{UID: r.UID, Attempt: r.Attempt}}}
		err := row.Scan(&v.node.Number, &v.node.Step, &v.Name, &v.Value)
		all = append(all, v)
		return err
	}, `SELECT n.node, n.step, m.name, v.value FROM `+earlier+` CROSS JOIN results v ON v.run = p.run AND v.node = p.node
		CROSS JOIN metrics m ON m.run = v.run AND m.metric = v.metric CROSS JOIN nodes n ON n.run = `+runID+` AND n.node = j.value ->> 0`, triples, r.UID, r.UID, r.Attempt)
	for _, v := range all {
		if err == nil {
			_, err = tx.SetResults(v.node, []Result{v.Result}, true)
		}
	}
	return err
}

// AllCarried reports whether no node of a DAG has run in it.
func (tx *Tx) AllCarried(uid string, attempt int) (all bool, err error) {
	defer wrap(&err, "whether run %s attempt %d has nodes of its own", uid, attempt)
	err = tx.queryRow(
		`SELECT NOT EXISTS (SELECT 1 FROM nodes WHERE run = `+runID+` AND source <> '`+SourceCarried+`')`,
		uid,
		attempt,
	).Scan(
		&all,
	)
	return all, err
}
