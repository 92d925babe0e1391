package workflow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// With spec.resume FromFailure, nodes that have succeeded in the attempt before are in the DAGs of a new one, too, as
// done: DAGMan does not send them, their rows say how they ended, and their output is linked into the new attempt's.
// What still has to run and pulls from them gets it spooled again.

// resumes reports whether a new attempt goes on from the one before.
func resumes(w *v1alpha1.HTCWorkflow) bool { return w.Spec.Resume == v1alpha1.ResumeFromFailure }

// spot identifies a node in attempts of different specs.
type spot struct {
	step            string
	sequence, index int
	name            string // in spec.graph, in place of the index
}

func spotOf(n ledger.Node) spot { return spotAt(n.StepName, n.Sequence, n.Item, n.Label) }

func spotAt(step string, sequence, index int, name string) spot {
	if name != "" {
		index = 0
	}
	return spot{step, sequence, index, name}
}

// former is what an earlier attempt has left.
type former struct {
	dir       string // of its output; empty: there is none
	done      map[spot]ledger.Carried
	items     []string
	tables    map[string][]string // of steps
	named     map[string]bool     // the rows of nodes of spec.graph, after the names of their steps
	sequences int                 // 0: none had nodes
}

// kept says which nodes of a DAG do not run again.
type kept struct {
	from  string           // the directory that has their output
	is    []bool           // by number
	nodes []ledger.Carried // what the intent records; none if it is in the ledger already
}

func (k kept) has(n int) bool { return n < len(k.is) && k.is[n] }

// runs reports whether any node of a step does.
func (p plannedDAG) runs(step int) bool {
	for number, n := range p.nodes {
		if n.Step == step && !p.kept.has(number) {
			return true
		}
	}
	return false
}

// keeps decides that for a DAG, or reads it from the rows if its intent is in the ledger.
func (c *Controller) keeps(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	s Situation,
	p plannedDAG,
	total int,
	recorded *ledger.Run,
) (k kept, err error) {
	number := s.Attempt
	if recorded == nil && s.due() {
		number++
	}
	if number < 2 || recorded == nil && !resumes(w) {
		return k, nil
	}
	runs, err := c.Runs(ctx, w.Namespace+"/"+w.Name)
	if err != nil {
		return k, err
	}
	before := attemptBefore(runs, string(w.UID), number)
	if len(before) == 0 {
		return k, nil
	}
	k.from = before[0].OutputDir
	if recorded != nil {
		k.is, err = c.recorded(ctx, *recorded, len(p.nodes))
		return k, err
	}
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, d := range s.DAGs {
			if s.due() {
				break // they are of the attempt before
			}
			// What comes after steps for all sequences, or is one, depends on all that came before.
			if all, err := tx.AllCarried(d.Run.UID, d.Run.Attempt); err != nil || !all {
				return err
			}
		}
		f, err := readFormer(tx, before)
		if err == nil && (p.level == 0 || f.sequences == 0 || f.sequences == total) {
			k = f.keep(p)
		}
		return err
	})
	return k, err
}

// attemptBefore returns the DAGs of the newest attempt before one of which something was sent.
func attemptBefore(runs []ledger.Run, uid string, number int) []ledger.Run {
	own := slices.DeleteFunc(slices.Clone(runs), func(run ledger.Run) bool { return run.UID != uid })
	last := lastSent(own, number)
	if last == 0 {
		return nil
	}
	dags, _ := Attempt(own, last)
	return dags
}

// lastSent returns the number of that attempt, 0 if there is none.
func lastSent(own []ledger.Run, number int) int {
	for number--; number > 0; number-- {
		if dags, _ := Attempt(own, number); len(dags) > 0 && dags[0].Cluster > 0 {
			return number
		}
	}
	return 0
}

// recorded returns which nodes of a DAG are recorded not to run again.
func (c *Controller) recorded(ctx context.Context, run ledger.Run, nodes int) ([]bool, error) {
	is := make([]bool, nodes)
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		return eachDone(tx, run, func(n ledger.Node) {
			if n.Number < nodes {
				is[n.Number] = n.Source == ledger.SourceCarried
			}
		})
	})
	return is, err
}

// eachDone calls fn with each node of a DAG that has succeeded.
func eachDone(tx *ledger.Tx, run ledger.Run, fn func(ledger.Node)) error {
	for next := 0; ; {
		page, err := tx.Nodes(
			run.UID,
			run.Attempt,
			ledger.NodeFilter{State: ledger.NodeDone, From: next, Limit: nodesAtOnce},
		)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, n := range page {
			fn(n)
		}
		next = page[len(page)-1].Number + 1
	}
}

func readFormer(tx *ledger.Tx, dags []ledger.Run) (f former, err error) {
	f.dir, f.done = dags[0].OutputDir, map[spot]ledger.Carried{}
	if f.items, err = tx.Items(dags[0].UID, dags[0].Attempt); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return f, err
	}
	if run := tabled(dags); run != nil {
		if f.tables, err = tx.Tables(run.UID, run.Attempt); err != nil {
			return f, err
		}
	}
	f.named = map[string]bool{}
	for step, rows := range f.tables {
		for _, row := range rows {
			f.named[step+"\n"+graph.Unprioritized(row)] = true
		}
	}
	counted := 0 // of the level
	for _, run := range dags {
		counts, err := tx.SequenceCounts(run.UID, run.Attempt)
		if err != nil {
			return f, err
		}
		repeats, err := tx.Repeats(run.UID, run.Attempt)
		if err != nil {
			return f, err
		}
		if !repeats {
			counted = 0
		}
		counted += counts.Active + counts.Succeeded + counts.Failed
		f.sequences = max(f.sequences, counted)
		err = eachDone(tx, run, func(n ledger.Node) {
			f.done[spotOf(n)] = ledger.Carried{From: run.Attempt, Node: n.Number}
		})
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// keep decides which nodes of a DAG do not run again.
func (f former) keep(p plannedDAG) kept {
	done, from := make([]bool, len(p.nodes)), make([]ledger.Carried, len(p.nodes))
	for i, n := range p.nodes {
		at, was := f.done[spotAt(string(p.graph.Steps[n.Step].Name), n.Sequence, n.Index, n.Name)]
		done[i] = was && f.sameItem(p.items, n.Sequence) && f.sameRow(p, n) && f.hasFor(p, n)
		from[i] = at
		from[i].Number = i
	}
	k := kept{
		from: f.dir,
		is:   p.graph.Kept(p.nodes, done, func(n graph.Node, path string) bool { return f.has(p.graph.Name(n), path) }),
	}
	for i, is := range k.is {
		if is {
			k.nodes = append(k.nodes, from[i])
		}
	}
	return k
}

// sameItem reports whether a sequence has the same variables as before.
func (f former) sameItem(items []string, sequence int) bool {
	if sequence == graph.AllSequences {
		return true
	}
	at := func(all []string) string {
		if sequence < len(all) {
			return all[sequence]
		}
		return ""
	}
	return at(items) == at(f.items)
}

// sameRow reports whether a node has the same variables of its own as before.
func (f former) sameRow(p plannedDAG, n graph.Node) bool {
	step := string(p.graph.Steps[n.Step].Name)
	if n.Name != "" {
		return f.named[step+"\n"+graph.Unprioritized(p.tables[step][n.Index])]
	}
	at := func(rows []string) string {
		if n.Index < len(rows) {
			return rows[n.Index]
		}
		return ""
	}
	return at(p.tables[step]) == at(f.tables[step])
}

// hasFor reports whether the output of a node is here, with what later DAGs pull from it.
func (f former) hasFor(p plannedDAG, n graph.Node) bool {
	if f.dir == "" {
		return len(pulledLater(p.graph, n.Step)) == 0
	}
	if info, err := os.Stat(filepath.Join(f.dir, p.graph.Name(n))); err != nil || !info.IsDir() {
		return false
	}
	for _, path := range pulledLater(p.graph, n.Step) {
		if !f.has(p.graph.Name(n), path) {
			return false
		}
	}
	return true
}

// has reports whether a path stands for something of the output of a node.
func (f former) has(node, pattern string) bool {
	if f.dir == "" {
		return false
	}
	root, err := os.OpenRoot(filepath.Join(f.dir, node))
	if err != nil {
		return false
	}
	defer root.Close()
	found := false
	err = output.Tree{Root: root}.Matching(pattern, func(string) error {
		found = true
		return fs.SkipAll
	})
	return err == nil && found
}

// keepOutput links the output of nodes that do not run again into that of the new attempt. It may be repeated.
func (p plannedDAG) keepOutput(run ledger.Run) error {
	if len(p.kept.is) == 0 || run.OutputDir == "" || p.kept.from == "" || p.kept.from == run.OutputDir {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(run.OutputDir)) // of the workflow
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was none: the attempt before may never have had its files
	}
	if err != nil {
		return err
	}
	defer root.Close()
	from, to := filepath.Base(p.kept.from), filepath.Base(run.OutputDir)
	for i, n := range p.nodes {
		if !p.kept.has(i) {
			continue
		}
		if err := output.LinkTree(
			root,
			filepath.Join(from, p.graph.Name(n)),
			filepath.Join(to, p.graph.Name(n)),
		); err != nil {
			return fmt.Errorf("keep the output of %s: %w", p.graph.Name(n), err)
		}
	}
	if _, err := root.Stat(to); err != nil {
		return nil // nothing is kept
	}
	return output.Sync(run.OutputDir)
}
