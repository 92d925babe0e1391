package ledger

import "fmt"

// A Destination of a DAG has the number of a step; what its nodes have brought back is pushed there. The Proc of a Written is
// the number of a node.

// ExpectNodePushes records that what the nodes of a DAG that have succeeded brought back is to be pushed, or why it cannot be. What is
// recorded already stays. The output of carried nodes is always here.
func (tx *Tx) ExpectNodePushes(uid string, attempt int, whyNot string) error {
	_, err := tx.exec(`INSERT INTO written (run, number, proc, size, digest, push, note)
		SELECT n.run, n.step, n.node, -1, '', iif(? = '' OR n.source = '`+SourceCarried+`', 1, 3), iif(n.source = '`+SourceCarried+`', '', ?) FROM nodes n JOIN destinations d ON d.run = n.run AND d.number = n.step
		WHERE n.run = `+runID+` AND n.status = 4 ON CONFLICT (run, proc, number) DO NOTHING`, whyNot, whyNot, uid, attempt)
	if err != nil {
		return fmt.Errorf("outputs of the nodes of run %s attempt %d: %w", uid, attempt, err)
	}
	return nil
}

const selectNodePush = `SELECT d.number, d.path, d.url, d.artifact, w.proc, w.size, w.digest, w.push, w.note
	FROM written w JOIN destinations d ON d.run = w.run AND d.number = w.number WHERE w.run = ` + runID

// NextNodePush is NextPush for a DAG. It returns the node, too.
func (tx *Tx) NextNodePush(uid string, attempt, from int) (Written, Node, error) {
	w, err := scanWritten(tx.queryRow(selectNodePush+` AND w.push = 1 AND w.number >= ? ORDER BY w.number, w.proc LIMIT 1`, uid, attempt, from))
	if err != nil {
		return Written{}, Node{}, fmt.Errorf("next push of DAG %s attempt %d: %w", uid, attempt, err)
	}
	n, err := tx.Node(uid, attempt, w.Proc)
	return w, n, err
}

// UnpushedDAGs returns the DAGs with outputs that are to be pushed.
func (tx *Tx) UnpushedDAGs() ([]Run, error) {
	var runs []Run
	err := tx.query(func(row scanner) error {
		r, err := scanRun(row)
		runs = append(runs, r)
		return err
	}, `SELECT `+runColumns+` FROM runs WHERE kind = 'workflow' AND id IN (SELECT run FROM written WHERE push = 1) ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("DAGs with outputs to be pushed: %w", err)
	}
	return runs, nil
}
