package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// nodesAtOnce is how many are read from the ledger at a time, as procsAtOnce.
const nodesAtOnce = 200

// Nodes lists nodes of a workflow, those of the DAGs that were sent.
func (r *Reader) Nodes(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	w, err := r.workflow(ctx, q)
	if err != nil {
		return nil, err
	}
	dags, err := r.dagsOf(ctx, w, q)
	if err != nil {
		return nil, err
	}
	return &aggregate.Answer{
		Attempt: dags.attempt, Close: func() {},
		Write: func(ctx context.Context, out io.Writer) error {
			lines := json.NewEncoder(out)
			left := limit(q.Limit)
			for _, dag := range dags.runs {
				if err := r.list(ctx, dag, q, left, lines); err != nil {
					return left.reached(err)
				}
			}
			return nil
		},
	}, nil
}

// workflow is the one that is asked about.
func (r *Reader) workflow(ctx context.Context, q aggregate.Query) (*v1alpha1.HTCWorkflow, error) {
	runner := func(w *v1alpha1.HTCWorkflow) v1alpha1.Runner { return w.Spec.Runner }
	return lookUp(ctx, q, v1alpha1.WorkflowKind, r.o.Workflows, runner)
}

// dags are those of one attempt of a workflow.
type dags struct {
	runs    []ledger.Run
	attempt int // 0: none was sent
}

func (r *Reader) dagsOf(ctx context.Context, w *v1alpha1.HTCWorkflow, q aggregate.Query) (d dags, err error) {
	return ledger.Get(ctx, r.o.Ledger, func(tx *ledger.Tx) (dags, error) {
		return r.dags(tx, w, q)
	})
}

func (r *Reader) dags(tx *ledger.Tx, w *v1alpha1.HTCWorkflow, q aggregate.Query) (d dags, err error) {
	all, err := tx.Runs(ledger.RunFilter{Kind: ledger.Workflows, Namespace: w.Namespace, Name: w.Name})
	if err != nil {
		return d, fmt.Errorf("ask the ledger: %w", err)
	}
	var own []ledger.Run
	for _, run := range all {
		if run.UID == string(w.UID) {
			own = append(own, run)
		}
	}
	d.runs, d.attempt = r.o.Attempt(own, q.Attempt)
	if len(d.runs) == 0 && q.Attempt > 0 {
		return d, notFound(q, "HTCWorkflow %s has no attempt %d", w.Name, q.Attempt)
	}
	return d, nil
}

// lines counts those that a list may still have.
type lines struct{ left int }

// errEnough ends a list that has as many lines as were asked for.
var errEnough = errors.New("as many as were asked for")

// limit is that of a query, 0 for none.
func limit(most int) *lines {
	if most == 0 {
		most = math.MaxInt
	}
	return &lines{most}
}

// take counts one more, after which it returns errEnough if it is the last.
func (l *lines) take(written error) error {
	if l.left--; written == nil && l.left == 0 {
		return errEnough
	}
	return written
}

// reached makes errEnough no error.
func (l *lines) reached(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// list writes the wanted nodes of a DAG, page by page.
func (r *Reader) list(ctx context.Context, dag ledger.Run, q aggregate.Query, left *lines, out *json.Encoder) error {
	if dag.Attempt < q.After.DAG {
		return nil
	}
	filter := ledger.NodeFilter{State: ledger.NodeState(q.State)}
	if dag.Attempt == q.After.DAG {
		filter.From = q.After.Node + 1
	}
	return r.eachNode(ctx, dag, filter, func(n ledger.Node) error {
		if q.Node.Step != "" && n.StepName != q.Node.Step {
			return nil
		}
		return left.take(out.Encode(line(n)))
	})
}

// eachNode calls fn for the nodes of a DAG, which it reads page by page.
func (r *Reader) eachNode(
	ctx context.Context,
	dag ledger.Run,
	filter ledger.NodeFilter,
	fn func(ledger.Node) error,
) error {
	for filter.Limit = nodesAtOnce; ; {
		page, err := ledger.Get(ctx, r.o.Ledger, func(tx *ledger.Tx) ([]ledger.Node, error) {
			return tx.Nodes(dag.UID, dag.Attempt, filter)
		})
		if err != nil {
			return fmt.Errorf("ask the ledger: %w", err)
		}
		for _, n := range page {
			if err := fn(n); err != nil {
				return err
			}
		}
		if len(page) < nodesAtOnce {
			return nil
		}
		filter.From = page[len(page)-1].Number + 1
	}
}

func line(n ledger.Node) aggregate.Node {
	l := aggregate.Node{
		Step:     n.StepName,
		Index:    n.Item,
		Name:     n.Label,
		State:    aggregate.NodeState(n.State()),
		ExitCode: n.ExitCode,
		Signal:   n.Signal,
		Reason:   n.Reason,
		Message:  n.Message,
		Stderr:   n.Stderr,
		NodeKey:  aggregate.NodeKey{DAG: n.Attempt, Node: n.Number},
	}
	if n.Sequence != ledger.AllSequences {
		l.Sequence = &n.Sequence
	}
	if n.Cluster > 0 {
		l.JobID = n.JobID()
	}
	return l
}
