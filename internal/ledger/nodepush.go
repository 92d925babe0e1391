package ledger

import "fmt"

// A Destination of a DAG has the number of a step; what its nodes have brought back is pushed there. The Proc of a
// Written is the number of a node.

// ExpectNodePushes records that what the nodes of a DAG that have succeeded brought back is to be pushed, or why it
// cannot be. What is recorded already stays. The output of carried nodes is always here.
func (tx *Tx) ExpectNodePushes(uid string, attempt int, whyNot string) (err error) {
	defer wrap(&err, "outputs of the nodes of run %s attempt %d", uid, attempt)
	_, err = tx.exec(`INSERT INTO written (run, number, proc, size, digest, push, note)
		SELECT n.run, n.step, n.node, -1, '', iif(? = '' OR n.source = '`+SourceCarried+`', 1, 3), iif(n.source = '`+SourceCarried+`', '', ?) FROM nodes n JOIN destinations d ON d.run = n.run AND d.number = n.step
		WHERE n.run = `+runID+` AND n.status = 4 ON CONFLICT (run, proc, number) DO NOTHING`, whyNot, whyNot, uid, attempt)
	return err
}

const selectNodePush = `SELECT d.number, d.path, d.url, d.artifact, w.proc, w.size, w.digest, w.push, w.note
	FROM written w JOIN destinations d ON d.run = w.run AND d.number = w.number WHERE w.run = ` + runID

// NextNodePush is NextPush for a DAG. It returns the node, too.
func (tx *Tx) NextNodePush(uid string, attempt, from int) (Written, Node, error) {
	w, err := scanWritten(
		tx.queryRow(
			selectNodePush+` AND w.push = 1 AND w.number >= ? ORDER BY w.number, w.proc LIMIT 1`,
			uid,
			attempt,
			from,
		),
	)
	if err != nil {
		return Written{}, Node{}, fmt.Errorf("next push of DAG %s attempt %d: %w", uid, attempt, err)
	}
	n, err := tx.Node(uid, attempt, w.Proc)
	return w, n, err
}

// PushedNode is an artifact of a node that is in its registry, or was about to be.
type PushedNode struct {
	Written
	Place
	StepName string
}

// NodesPushed returns the first artifacts of a DAG, limited in number, that are in their registries, or were about to
// be when they were last heard of, in the order of their nodes, beginning with the given one.
func (tx *Tx) NodesPushed(uid string, attempt, from, limit int) (all []PushedNode, err error) {
	defer wrap(&err, "artifacts of run %s attempt %d", uid, attempt)
	return list(tx, into(func(p *PushedNode) []any {
		return []any{
			&p.Number,
			&p.Artifact,
			&p.Proc,
			&p.Digest,
			&p.Push,
			&p.Step,
			&p.Sequence,
			&p.Item,
			&p.Label,
			&p.StepName,
		}
	}), `SELECT d.number, d.artifact, w.proc, w.digest, w.push, n.step, n.sequence, n.item, n.name, s.name
		FROM written w JOIN destinations d ON d.run = w.run AND d.number = w.number
		JOIN nodes n ON n.run = w.run AND n.node = w.proc JOIN steps s ON s.run = n.run AND s.step = n.step
		WHERE w.run = `+runID+` AND w.proc >= ? AND w.digest <> '' ORDER BY w.proc LIMIT ? + 0`, uid, attempt, from, limit)
}

// UnpushedDAGs returns the DAGs with outputs that are to be pushed.
func (tx *Tx) UnpushedDAGs() (runs []Run, err error) {
	defer wrap(&err, "DAGs with outputs to be pushed")
	return list(
		tx,
		scanRun,
		`SELECT `+runColumns+` FROM runs WHERE kind = 'workflow' AND id IN (SELECT run FROM written WHERE push = 1) ORDER BY id`,
	)
}
