package ledger

import (
	"encoding/json"
)

// NodesToFetch returns the first nodes of a DAG, limited in number, whose end HTCondor has confirmed and whose output
// was not fetched.
func (tx *Tx) NodesToFetch(uid string, attempt, limit int) (nodes []Node, err error) {
	defer wrap(&err, "nodes of run %s attempt %d to fetch", uid, attempt)
	return list(
		tx,
		scanNode,
		`SELECT `+nodeColumns+` FROM runs r JOIN nodes p INDEXED BY nodes_unfetched`+joinStep+`WHERE r.uid = ? AND r.attempt = ?
		AND p.fetched = 0 AND p.cluster > 0 AND p.status <> 1 AND p.source <> 'callback' ORDER BY p.node LIMIT ? + 0`,
		uid,
		attempt,
		limit,
	)
}

// NodesFetched records that the output of some nodes is here, and that what those of them brought back that have
// succeeded is to be pushed. Those that are open again, or have another job by now, are left out.
func (tx *Tx) NodesFetched(uid string, attempt int, nodes []Node) (err error) {
	defer wrap(&err, "fetched nodes of run %s attempt %d", uid, attempt)
	pairs := make([][2]int, len(nodes))
	for i, n := range nodes {
		pairs[i] = [2]int{n.Number, n.Cluster}
	}
	text, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	_, err = tx.exec(`UPDATE nodes SET fetched = ? WHERE run = `+runID+` AND status <> 1 AND (node, cluster) IN
		(SELECT value ->> 0, value ->> 1 FROM json_each(?))`, int(IsFetched), uid, attempt, string(text))
	if err == nil {
		_, err = tx.exec(`INSERT INTO written (run, number, proc, size, digest, push, note)
			SELECT n.run, n.step, n.node, -1, '', 1, '' FROM json_each(?) j CROSS JOIN nodes n ON n.run = `+runID+` AND n.node = j.value ->> 0
			CROSS JOIN destinations d ON d.run = n.run AND d.number = n.step WHERE n.status = 4 AND n.fetched <> 0
			ON CONFLICT (run, proc, number) DO UPDATE SET size = -1, push = 1, note = ''`, string(text), uid, attempt)
	}
	return err
}

// AllNodesFetched records that the output of every node of an ended DAG is here, as far as there is any.
func (tx *Tx) AllNodesFetched(uid string, attempt int) (err error) {
	defer wrap(&err, "fetched nodes of run %s attempt %d", uid, attempt)
	_, err = tx.exec(`UPDATE nodes SET fetched = ? WHERE run = `+runID+` AND fetched = 0`, int(IsFetched), uid, attempt)
	return err
}

// SomeFetched reports whether the output of any node that ran in a DAG was fetched alone, or that of all.
func (tx *Tx) SomeFetched(uid string, attempt int) (some bool, err error) {
	defer wrap(&err, "whether nodes of run %s attempt %d were fetched", uid, attempt)
	err = tx.queryRow(`SELECT EXISTS (SELECT 1 FROM nodes WHERE run = `+runID+` AND fetched <> 0 AND source <> '`+SourceCarried+`')`, uid, attempt).
		Scan(&some)
	return some, err
}

// SomeRan reports whether any node of a DAG has had a job in it, as far as anybody has told. The others have no output.
func (tx *Tx) SomeRan(uid string, attempt int) (some bool, err error) {
	defer wrap(&err, "whether nodes of run %s attempt %d ran", uid, attempt)
	err = tx.queryRow(`SELECT EXISTS (SELECT 1 FROM nodes WHERE run = `+runID+` AND NOT (cluster = 0 AND status = ?)
		AND source <> '`+SourceCarried+`')`, uid, attempt, int(StatusFutile)).
		Scan(&some)
	return some, err
}
