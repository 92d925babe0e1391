package follow

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// NodeArchive finds the files of nodes whose output has been fetched, also while their DAG goes on.
func (r *Reader) NodeArchive(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	return r.keptNodes(ctx, q, func(ctx context.Context, w io.Writer, c chosen) error {
		out := tar.NewWriter(w)
		err := c.each(ctx, q.Proc, func(number int, name string, records func() (map[string]string, error)) error {
			first, err := records()
			if err != nil {
				return err
			}
			err = r.o.Nodes.ArchiveNode(ctx, out, c.at, name, number, first)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		return out.Close()
	})
}

// NodeFiles finds the names and sizes of the files that NodeArchive would send.
func (r *Reader) NodeFiles(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	return r.keptNodes(ctx, q, func(ctx context.Context, w io.Writer, c chosen) error {
		lines := json.NewEncoder(w)
		return c.each(ctx, q.Proc, func(number int, name string, _ func() (map[string]string, error)) error {
			err := r.o.Nodes.NodeFiles(ctx, c.at, name, func(path string, size int64) error {
				return lines.Encode(aggregate.File{Job: number, Node: name, Path: path, Size: size})
			})
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
	})
}

// chosen are the nodes that a query asks for.
type chosen struct {
	*Reader
	steps *graph.Graph
	runs  []ledger.Run
	q     aggregate.Query
	at    output.Attempt
}

func (r *Reader) keptNodes(
	ctx context.Context,
	q aggregate.Query,
	write func(context.Context, io.Writer, chosen) error,
) (*aggregate.Answer, error) {
	w, err := r.workflow(ctx, q)
	if err != nil {
		return nil, err
	}
	steps, err := graph.New(w.Spec)
	if err != nil { // it says so itself
		return nil, absent(q, where(objectOfWorkflow(w), nil, nil))
	}
	dags, err := r.dagsOf(ctx, w, q)
	if err != nil {
		return nil, err
	}
	if len(dags.runs) == 0 {
		return nil, absent(q, where(objectOfWorkflow(w), nil, nil))
	}
	c := chosen{r, steps, dags.runs, q, output.Attempt{Namespace: q.Namespace, Name: q.Name, Number: dags.attempt}}
	count := 0
	if err := c.each(
		ctx,
		0,
		func(int, string, func() (map[string]string, error)) error { count++; return nil },
	); err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, notFound(q, "HTCWorkflow %s has sent no such node", q.Name)
	}
	return &aggregate.Answer{
		Attempt: dags.attempt, Jobs: count, Close: func() {},
		Write: func(ctx context.Context, out io.Writer) error { return write(ctx, out, c) },
	}, nil
}

func objectOfWorkflow(w *v1alpha1.HTCWorkflow) object {
	return object{w.Name, w.Status.Phase, w.Status.Conditions}
}

// fill gives the steps the items with which a DAG was sent, and returns those of the sequences.
func (c chosen) fill(ctx context.Context, dag ledger.Run) (sequences []string, err error) {
	err = c.o.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		var tables map[string][]string
		if tables, err = tx.Tables(dag.UID, dag.Attempt); err != nil {
			return err
		}
		if len(tables) > 0 {
			c.steps.Fill(tables)
		}
		sequences, err = tx.Items(dag.UID, dag.Attempt)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask the ledger: %w", err)
	}
	return sequences, nil
}

// each calls fn for the nodes that may have left something, by their numbers within the attempt, beginning with one.
// The records of their first headers are made for those who ask.
func (c chosen) each(
	ctx context.Context,
	from int,
	fn func(number int, name string, records func() (map[string]string, error)) error,
) error {
	var filter ledger.NodeFilter
	if !c.q.AnySequence {
		filter.Sequence = &c.q.Node.Sequence
	}
	places := map[string]int{} // of the steps, in the spec
	for i, step := range c.steps.Steps {
		places[string(step.Name)] = i
	}
	if c.q.Node.Step != "" {
		if _, is := places[c.q.Node.Step]; !is {
			return notFound(c.q, "HTCWorkflow %s has no step %q", c.q.Name, c.q.Node.Step)
		}
	}
	for _, dag := range c.runs {
		// Of the numbers of a DAG some are missing when a later one has repeated these nodes.
		first := (dag.Attempt - c.runs[0].Attempt) * graph.MostNodes
		filter.From = max(0, from-first)
		if c.q.Node.Step != "" {
			err := c.o.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
				filter.Step, err = stepOf(tx, dag, c.q.Node.Step)
				return err
			})
			if err != nil {
				return fmt.Errorf("ask the ledger: %w", err)
			}
			if filter.Step == nil {
				continue
			}
		}
		sequences := sync.OnceValues(func() ([]string, error) { return c.fill(ctx, dag) })
		err := c.eachNode(ctx, dag, filter, func(n ledger.Node) error {
			step, is := places[n.StepName]
			if !is || n.Status == ledger.StatusFutile && n.Cluster == 0 {
				return nil
			}
			node := graph.Node{Step: step, Sequence: n.Sequence, Index: n.Item, Name: n.Label}
			name := c.steps.Name(node)
			return fn(first+n.Number, name, func() (map[string]string, error) {
				records := map[string]string{aggregate.RecordNode: name}
				if c.steps.Steps[step].Job.Landing == nil {
					return records, nil
				}
				items, err := sequences()
				if err != nil {
					return nil, err
				}
				records[aggregate.RecordVariables] = c.steps.Variables(node, items)
				records[aggregate.RecordNumber] = strconv.Itoa(n.Item)
				records[aggregate.RecordCluster] = strconv.Itoa(n.Cluster)
				return records, nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
