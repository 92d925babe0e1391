package ledger

import (
	"encoding/json"
)

// UnchangedNodes is Unchanged for the nodes of a DAG.
func (tx *Tx) UnchangedNodes(
	uid string,
	attempt, from, limit int,
	fn func(number, cluster, jobStatus int),
) (err error) {
	defer wrap(&err, "unchanged nodes of run %s attempt %d", uid, attempt)
	return tx.query(func(row scanner) error {
		var number, cluster, jobStatus int
		err := row.Scan(&number, &cluster, &jobStatus)
		fn(number, cluster, jobStatus)
		return err
	}, `SELECT p.node, p.cluster, p.jobStatus FROM nodes p INDEXED BY nodes_unconfirmed WHERE p.run = `+runID+` AND p.node >= ? + 0 AND p.cluster > 0 AND `+unchangedNode+`
		ORDER BY p.node LIMIT ? + 0`, uid, attempt, from, limit)
}

// nodesOf are the nodes of a list of numbers.
const nodesOf = selectNode + `WHERE r.uid = ? AND r.attempt = ? AND p.node IN (SELECT value FROM json_each(?))`

// NodesAmong returns the nodes of a DAG with these numbers, in their order; those that it does not have are left out.
func (tx *Tx) NodesAmong(uid string, attempt int, numbers []int) (nodes []Node, err error) {
	defer wrap(&err, "%d nodes of run %s attempt %d", len(numbers), uid, attempt)
	text, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	return list(tx, scanNode, nodesOf+` ORDER BY p.node`, uid, attempt, string(text))
}

// NodeSet is a set of numbers of nodes, a bit for each.
type NodeSet struct{ words []uint32 }

// Has reports whether a number is in the set.
func (s NodeSet) Has(number int) bool {
	return number >= 0 && number/32 < len(s.words) && s.words[number/32]&(1<<(number%32)) != 0
}

// Empty reports whether there is none.
func (s NodeSet) Empty() bool { return len(s.words) == 0 }

// perWaitingPage is how many numbers one question for waiting nodes covers.
const perWaitingPage = 320 * 32

// WaitingNodes adds to a set the waiting nodes of a DAG, from a number on, one page of them. It returns where the next
// page begins, 0 after the last.
func (tx *Tx) WaitingNodes(uid string, attempt int, set *NodeSet, from int) (next int, err error) {
	defer wrap(&err, "waiting nodes of run %s attempt %d", uid, attempt)
	err = tx.query(func(row scanner) error {
		var at int
		var word uint32
		if err := row.Scan(&at, &word); err != nil {
			return err
		}
		for len(set.words) <= at {
			set.words = append(set.words, 0)
		}
		set.words[at] |= word
		return nil
	}, `SELECT p.node / 32, sum(1 << (p.node % 32)) FROM nodes p
		WHERE p.run = `+runID+` AND p.node >= ? + 0 AND p.node < ? + 0 AND p.status = 1 AND p.cluster = 0 GROUP BY 1`,
		uid, attempt, from, from+perWaitingPage)
	if err == nil {
		err = tx.queryRow(
			`SELECT coalesce(min(p.node) / 32 * 32, 0) FROM nodes p WHERE p.run = `+runID+` AND p.node >= ? + 0 AND p.status = 1 AND p.cluster = 0`,
			uid,
			attempt,
			from+perWaitingPage,
		).Scan(
			&next,
		)
	}
	return next, err
}

// KeptStderrs counts the nodes of a DAG with an end of a standard error.
func (tx *Tx) KeptStderrs(uid string, attempt int) (n int, err error) {
	defer wrap(&err, "count standard errors of run %s attempt %d", uid, attempt)
	err = tx.queryRow(`SELECT count(*) FROM nodes INDEXED BY nodes_stderr WHERE run = `+runID+` AND stderr <> ''`, uid, attempt).
		Scan(&n)
	return n, err
}
