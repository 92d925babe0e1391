package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Steps may write tables of items for later ones. Such a table is read from the store when the DAG of the step that
// needs it is about to begin, and recorded with the intent of that DAG: after that nobody looks at the file again.

// tabled returns the newest DAG of an attempt that is recorded with the tables read by then; nil: there is none.
func tabled(dags []ledger.Run) *ledger.Run {
	for i := len(dags) - 1; i >= 0; i-- {
		if dags[i].State != ledger.Refused {
			return &dags[i]
		}
	}
	return nil
}

// readMade reads the tables that steps of this DAG get their items from and that earlier ones have written.
func (c *Controller) readMade(s Situation, o graph.Outcome, p *plannedDAG) error {
	futile := p.graph.FutileSteps(o)
	for _, i := range p.graph.Levels[p.level] {
		name, table := string(p.graph.Steps[i].Name), p.graph.TableOf(i)
		if _, read := p.tables[name]; table == nil || read || futile[i] ||
			!p.graph.Steps[i].All && len(o.Sequences) == 0 {
			continue
		}
		if s.Unfetched {
			return &sending.Waiting{
				After: time.Second,
				Message: fmt.Sprintf(
					"the output of the step %s is being fetched, as the step %s gets its items from it",
					p.graph.Steps[table.From].Name,
					name,
				),
			}
		}
		rows, digest, err := c.rowsFrom(s, o, p.graph, i)
		if err != nil {
			return err
		}
		p.tables[name], p.counted = rows, true
		sum := sha256.Sum256([]byte(p.digest + " " + digest))
		p.digest = "sha256:" + hex.EncodeToString(sum[:])
	}
	p.graph.Fill(p.tables)
	return nil
}

// rowsFrom reads the items of a step from the output of the nodes that write them.
func (c *Controller) rowsFrom(
	s Situation,
	o graph.Outcome,
	g *graph.Graph,
	i int,
) (all []string, digest string, err error) {
	table, where := g.TableOf(i), "the items of the step "+string(g.Steps[i].Name)
	at, err := storedAs(s.DAGs[0].Run)
	if c.Output.Root == "" || err != nil {
		return nil, "", condor.Refusal("%s: this htcd keeps no output of jobs, and so has no table", where)
	}
	h, size, made := sha256.New(), 0, 0
	const tooLarge = "all tables together are too large: make it several HTCWorkflows"
	for _, n := range g.Writers(i, o.Sequences) {
		refuse := func(why error) error { return condor.Refusal("%s: %s of %s: %w", where, table.Path, g.Name(n), why) }
		text, err := c.readFrom(at, g.Name(n), table.Path)
		switch {
		case isMissing(err) && table.Spare:
			continue
		case isMissing(err):
			return nil, "", refuse(
				errors.New("there is no such file in its output; see what it has left with htcd get-output"),
			)
		case condor.KindOf(err) == condor.Refused:
			return nil, "", refuse(err)
		case err != nil:
			return nil, "", err
		}
		if size += len(text); size > inputs.MaxTable {
			return nil, "", refuse(errors.New(tooLarge))
		}
		rows, err := items.Table(text, items.MostNodes, checkVariable)
		if err != nil {
			return nil, "", refuse(err)
		}
		for _, row := range rows { // in which the names of its columns stand, too
			made += len(row)
		}
		if made > inputs.MaxTable {
			return nil, "", refuse(errors.New(tooLarge))
		}
		all = append(all, rows...)
		_, _ = h.Write(text) // never fails
	}
	switch {
	case len(all) == 0:
		return nil, "", condor.Refusal(
			"%s: no job of the step %s has left %s",
			where,
			g.Steps[table.From].Name,
			table.Path,
		)
	case len(all) > items.MostNodes:
		return nil, "", condor.Refusal(
			"%s: expected at most %d rows, found %d: make it several HTCWorkflows",
			where,
			items.MostNodes,
			len(all),
		)
	}
	return all, hex.EncodeToString(h.Sum(nil)), nil
}

func (c *Controller) readFrom(at output.Attempt, node, path string) ([]byte, error) {
	file, err := c.Output.OpenAt(at, node, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return inputs.ReadTable(file)
}

// isMissing reports whether there is no such file, or something else in its place. No file of a user leads elsewhere.
func isMissing(err error) bool {
	_, is := errors.AsType[*fs.PathError](err)
	return is && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE)
}
