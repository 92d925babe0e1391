package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
)

// AllSequences is the sequence of a node that is one for all of them.
const AllSequences = -1

// Place is where a node stands in its workflow.
type Place struct {
	Step     int    // in spec.steps, from 0; finally comes after the last
	Sequence int    // from 0, or AllSequences
	Item     int    // counts the parallel jobs of that step and sequence, from 0
	Label    string // what the node is called within its step; empty: Sequence and Item say it
}

// Node is one job of a DAG, and its place. Its Proc is as that of an HTCJob, except that its cluster is its own, 0
// while no job of it was seen, and its number Run.NodeProc; Name is that of the workflow.
type Node struct {
	Proc
	Place
	Number   int    // in the DAG, from 0
	Claimed  bool   // only a callback has named its cluster
	StepName string // as the DAG was sent
	Deferred bool   // as its Step is
}

// Waiting reports whether no job of the node was seen yet.
func (n Node) Waiting() bool { return n.Status == StatusOpen && n.Cluster == 0 }

// StatusFutile is that of a node that will never run to its end, because one before it failed or its DAG was removed.
// One that htcd removed while it ran has a cluster.
const StatusFutile Status = 8

// NodeState is what a node does, in a word.
type NodeState string

const (
	NodeWaiting NodeState = "waiting" // for a node before it, or HTCondor has not been asked about it yet
	NodeIdle    NodeState = "idle"
	NodeRunning NodeState = "running"
	NodeHeld    NodeState = "held"
	NodeDone    NodeState = "done"
	NodeFailed  NodeState = "failed"
	NodeFutile  NodeState = "futile"
)

// nodeStates are the conditions for each state. Codes are written out, not bound, so that the partial indexes can
// serve.
var nodeStates = map[NodeState]string{
	NodeWaiting: `p.status = 1 AND p.jobStatus NOT IN (1, 2, 5, 6, 7)`,
	NodeIdle:    `p.status = 1 AND p.jobStatus = 1`,
	NodeRunning: `p.status = 1 AND p.jobStatus IN (2, 6, 7)`,
	NodeHeld:    `p.status = 1 AND p.jobStatus = 5`,
	NodeDone:    `p.status = 4`,
	NodeFailed:  `p.status = 7`,
	NodeFutile:  `p.status = 8`,
}

// State returns the node's.
func (n Node) State() NodeState {
	switch {
	case n.Status == StatusSucceeded:
		return NodeDone
	case n.Status == StatusFailed:
		return NodeFailed
	case n.Status == StatusFutile:
		return NodeFutile
	case n.JobStatus == jobIdle:
		return NodeIdle
	case n.JobStatus == jobRunning, n.JobStatus == jobTransferring, n.JobStatus == jobSuspended:
		return NodeRunning
	case n.JobStatus == jobHeld:
		return NodeHeld
	}
	return NodeWaiting
}

// NodeFilter narrows Nodes; the zero value means every node of the run.
type NodeFilter struct {
	State       NodeState // empty: any
	Step        *int      // nil: any
	Label       string    // empty: any
	Sequence    *int      // nil: any
	Item        *int      // nil: any
	Unconfirmed bool      // only those of which a job was seen that is open, or ended only by a callback
	Changed     bool      // only those that UnchangedNodes does not show
	From        int       // the first number wanted
	Limit       int       // most rows, 0: all
}

// fetchedNode is whether a node's output was fetched: alone, or at the end with that of all.
const fetchedNode = `CASE p.fetched WHEN 0 THEN coalesce((SELECT fetched FROM htcjobs WHERE run = r.id AND proc = 0), 0) ELSE p.fetched END`

// nodeProc is Run.NodeProc in SQL.
const nodeProc = `iif(r.factory > 0, p.node, 0)`

const nodeColumns = `r.uid, r.attempt, r.namespace, r.name, p.cluster, ` + nodeProc + `, p.status, p.jobStatus, p.exitCode, p.exitSignal, p.reason, p.message,
	p.source, p.absent, p.changed, p.checked, ` + fetchedNode + `, p.stderr, p.usage,
	p.claimed, p.node, p.step, p.sequence, p.item, p.name, s.name, s.deferred`

const (
	selectNode = `SELECT ` + nodeColumns + ` FROM runs r JOIN nodes p ` + joinStep
	joinStep   = ` ON p.run = r.id JOIN steps s ON s.run = r.id AND s.step = p.step `
)

// nodesAtOnce is how many are inserted by one statement.
const nodesAtOnce = 1000

// InsertNodes adds the steps of a DAG and its nodes, numbered from 0, all waiting, dated r.Created. r must be in the
// ledger (ErrNotFound) and be of a workflow; ErrExists if it already has nodes.
func (tx *Tx) InsertNodes(r Run, steps []Step, nodes []Place) (err error) {
	defer wrap(&err, "insert %d nodes of run %s attempt %d", len(nodes), r.UID, r.Attempt)
	var id int64
	var there bool
	err = tx.queryRow(
		`SELECT id, EXISTS (SELECT 1 FROM nodes WHERE run = runs.id) FROM runs WHERE uid = ? AND attempt = ? AND kind = ?`,
		r.UID,
		r.Attempt,
		string(Workflows),
	).Scan(
		&id,
		&there,
	)
	switch {
	case err != nil:
		return err
	case there:
		return ErrExists
	case len(nodes) == 0:
		return errors.New("a DAG without nodes cannot be")
	}
	known := make(map[int]bool, len(steps))
	for _, s := range steps {
		known[s.Number] = true
		if _, err := tx.exec(`INSERT INTO steps (run, step, name, deferred, effective) VALUES (?, ?, ?, ?, ?)`,
			id, s.Number, s.Name, s.Deferred, s.Effective); err != nil {
			return err
		}
	}
	for from := 0; from < len(nodes); from += nodesAtOnce {
		some := nodes[from:min(from+nodesAtOnce, len(nodes))]
		places := make([][4]any, len(some))
		for i, at := range some {
			if !known[at.Step] {
				return fmt.Errorf("node %d is of step %d, which is not of this DAG", from+i, at.Step)
			}
			places[i] = [4]any{at.Step, at.Sequence, at.Item, at.Label}
		}
		text, err := json.Marshal(places)
		if err != nil {
			return err
		}
		if _, err := tx.exec(`INSERT INTO nodes (run, node, step, sequence, item, name, changed)
			SELECT ?, ? + key, value ->> 0, value ->> 1, value ->> 2, value ->> 3, ? FROM json_each(?)`, id, from, millis(r.Created), string(text)); err != nil {
			return err
		}
	}
	for _, s := range steps {
		if s.MayFail > 0 {
			if _, err := tx.exec(
				`INSERT INTO tolerated (run, sequence, step, most) SELECT DISTINCT run, sequence, step, ? FROM nodes
				WHERE run = ? AND step = ? AND sequence >= 0`,
				s.MayFail,
				id,
				s.Number,
			); err != nil {
				return err
			}
		}
	}
	return tx.tallyNodes(id)
}

// UpdateNode writes the cluster of a node, Claimed and the mutable fields of its Proc except Fetched; the output of a
// node that is open again is to be fetched again. ErrNotFound if there is no such row.
func (tx *Tx) UpdateNode(n Node) (err error) {
	defer wrap(&err, "update node %d of run %s attempt %d", n.Number, n.UID, n.Attempt)
	return tx.change(
		`UPDATE nodes SET cluster = ?, claimed = ?, status = ?, jobStatus = ?, exitCode = ?, exitSignal = ?, reason = ?,
		message = ?, source = ?, absent = ?, changed = ?, checked = ?, stderr = ?, usage = ?, fetched = CASE ? WHEN 1 THEN 0 ELSE fetched END
		WHERE run = `+runID+` AND node = ?`,
		n.Cluster,
		n.Claimed,
		int(n.Status),
		n.JobStatus,
		n.ExitCode,
		n.Signal,
		n.Reason,
		n.Message,
		n.Source,
		n.Absent,
		millis(n.Changed),
		millis(n.Checked),
		n.Stderr,
		n.Usage,
		int(n.Status),
		n.UID,
		n.Attempt,
		n.Number,
	)
}

// Node returns one node of a DAG, or ErrNotFound.
func (tx *Tx) Node(uid string, attempt, number int) (n Node, err error) {
	defer wrap(&err, "node %d of run %s attempt %d", number, uid, attempt)
	return scanNode(tx.queryRow(selectNode+`WHERE r.uid = ? AND r.attempt = ? AND p.node = ?`, uid, attempt, number))
}

// Nodes returns the nodes of a DAG that match f, in the order of their numbers. Ask in pages, as for Procs.
func (tx *Tx) Nodes(uid string, attempt int, f NodeFilter) (nodes []Node, err error) {
	defer wrap(&err, "nodes of run %s attempt %d", uid, attempt)
	where, args := f.where([]any{uid, attempt})
	return list(
		tx,
		scanNode,
		`SELECT `+nodeColumns+` FROM runs r JOIN nodes p `+f.index()+joinStep+`WHERE r.uid = ? AND r.attempt = ?`+where+` ORDER BY p.node LIMIT ? + 0`,
		args...)
}

// index names that which serves the filter. SQLite would read all nodes by their numbers.
func (f NodeFilter) index() string {
	switch {
	case f.State == NodeFailed:
		return `INDEXED BY nodes_failed`
	case f.Unconfirmed:
		return `INDEXED BY nodes_unconfirmed`
	}
	return ``
}

// where adds the filter's conditions, and its arguments up to the limit.
func (f NodeFilter) where(args []any) (string, []any) {
	where, args := ` AND p.node >= ? + 0`, append(args, f.From)
	if f.State != "" {
		where += ` AND ` + nodeStates[f.State]
	}
	if f.Step != nil {
		where, args = where+` AND p.step = ?`, append(args, *f.Step)
	}
	if f.Label != "" {
		where, args = where+` AND p.name = ?`, append(args, f.Label)
	}
	if f.Sequence != nil {
		where, args = where+` AND p.sequence = ?`, append(args, *f.Sequence)
	}
	if f.Item != nil {
		where, args = where+` AND p.item = ?`, append(args, *f.Item)
	}
	if f.Unconfirmed {
		where += ` AND (p.status = 1 OR p.source = 'callback') AND p.cluster > 0`
	}
	if f.Changed {
		where += ` AND NOT ` + unchangedNode
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	return where, append(args, limit)
}

var scanNode = into(func(n *Node) []any {
	return []any{
		&n.UID, &n.Attempt, &n.Namespace, &n.Name, &n.Cluster, &n.Proc.Proc, &n.Status, &n.JobStatus, &n.ExitCode,
		&n.Signal, &n.Reason, &n.Message, &n.Source, &n.Absent, (*moment)(&n.Changed), (*moment)(&n.Checked),
		&n.Fetched, &n.Stderr, &n.Usage, &n.Claimed, &n.Number, &n.Step, &n.Sequence, &n.Item, &n.Label, &n.StepName,
		&n.Deferred,
	}
})
