package nodes

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/notify/results"
	"htc.cern.ch/htcd/internal/output"
)

// keptStderrs is how many nodes of a DAG the end of the standard error is kept of: of a DAG whose 100,000 nodes all
// fail it would be 400 MB.
const keptStderrs = 100

// Recorded is what became of a callback.
type Recorded struct {
	Run     ledger.Run
	Node    ledger.Node
	Changed bool
	Ask     bool   // only HTCondor can say what it means
	Results bool   // there are new ones
	Ignored string // what is wrong with some of its results
}

// Record records a node's own report of its start or its end in the caller's transaction. Its errors are
// notify.ErrUnknownJob and ErrForbidden, and the ledger's. The run may still be an intent: a DAG can be faster than its
// submission.
func Record(tx *ledger.Tx, c notify.Callback, tokenHash []byte, at time.Time) (Recorded, error) {
	run, err := runOf(tx, c, tokenHash)
	if err != nil {
		return Recorded{}, err
	}
	was, err := tx.Node(run.UID, run.Attempt, c.Node.Number)
	cluster, ok := clusterOf(c.JobID, run.NodeProc(c.Node.Number))
	if errors.Is(err, ledger.ErrNotFound) || !ok {
		return Recorded{}, notify.ErrUnknownJob
	}
	if err != nil {
		return Recorded{}, err
	}
	if c.Started {
		is, changed := started(was, cluster, at)
		if changed {
			err = tx.UpdateNode(is)
		}
		return Recorded{Run: run, Node: is, Changed: changed}, err
	}
	// When a run is being stopped, a job's callback says how it was killed.
	if run.Stop != "" {
		return Recorded{Run: run, Node: was, Ask: true}, nil
	}
	if c, err = shortened(tx, run, c); err != nil {
		return Recorded{}, err
	}
	is, changed := wrote(was, cluster, c)
	if !c.Held {
		is, changed = callback(was, cluster, c, at)
	}
	if changed {
		err = tx.UpdateNode(is)
	}
	r := Recorded{Run: run, Node: is, Changed: changed, Ask: c.Held || deferred(was, c)}
	if err == nil && !c.Held && (is.Cluster == cluster || is.Cluster == 0) {
		r.Results, r.Ignored, err = keep(tx, is, c.Node.Results, true)
	}
	return r, err
}

// Keep stores the results of a node that came with its output, unless its callback brought them.
func Keep(tx *ledger.Tx, n ledger.Node, text string) (ignored string, err error) {
	_, ignored, err = keep(tx, n, text, false)
	return ignored, err
}

func keep(tx *ledger.Tx, n ledger.Node, text string, replace bool) (some bool, ignored string, err error) {
	all, ignored := results.Parse(text)
	if len(all) == 0 {
		return false, ignored, nil
	}
	rows := make([]ledger.Result, len(all))
	for i, r := range all {
		rows[i] = ledger.Result(r)
	}
	left, err := tx.SetResults(n, rows, replace)
	if len(left) > 0 && ignored == "" {
		ignored = fmt.Sprintf("%s: expected at most %d names in all steps together", left[0], ledger.MaxMetrics)
	}
	return true, ignored, err
}

// runOf returns the DAG whose token came with a callback.
func runOf(tx *ledger.Tx, c notify.Callback, tokenHash []byte) (ledger.Run, error) {
	runs, err := tx.Runs(ledger.RunFilter{Kind: ledger.Workflows, Namespace: c.Namespace, Name: c.Name})
	if err != nil {
		return ledger.Run{}, err
	}
	for _, run := range runs {
		if notify.Match(run.TokenHash, tokenHash) {
			return run, nil
		}
	}
	if len(runs) > 0 {
		return ledger.Run{}, notify.ErrForbidden
	}
	return ledger.Run{}, notify.ErrUnknownJob
}

// shortened limits what a callback brings of the standard error.
func shortened(tx *ledger.Tx, run ledger.Run, c notify.Callback) (notify.Callback, error) {
	if c.Stderr = output.End(c.Stderr, 0, notify.MaxStderr); c.Stderr == "" {
		return c, nil
	}
	kept, err := tx.KeptStderrs(run.UID, run.Attempt)
	if kept >= keptStderrs {
		c.Stderr = ""
	}
	return c, err
}

// clusterOf reads the job id of a node, given its proc.
func clusterOf(jobID string, proc int) (cluster int, ok bool) {
	text, ok := strings.CutSuffix(jobID, fmt.Sprint(".", proc))
	cluster, err := strconv.Atoi(text)
	return cluster, ok && err == nil && cluster > 0
}
