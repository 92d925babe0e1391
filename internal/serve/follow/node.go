package follow

import (
	"context"
	"fmt"
	"os"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// NodeLog finds one stream of one node of a workflow.
func (r *Reader) NodeLog(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	n := &ofNode{Reader: r, q: q}
	f := &following{Reader: r, q: q, find: n.find, kept: n.open}
	answer, err := f.answer(ctx)
	if err == nil && n.attempt > 0 {
		answer.Attempt = n.attempt
		n.q.Attempt = n.attempt // later attempts are not shown
	}
	return answer, err
}

// ofNode finds a node.
type ofNode struct {
	*Reader
	q       aggregate.Query
	name    string             // its directory
	attempt int                // 0: nothing was sent
	key     *aggregate.NodeKey // once it was found
}

func (n *ofNode) open(file string) (*os.File, error) {
	return n.o.Nodes.OpenAt(output.Attempt{Namespace: n.q.Namespace, Name: n.q.Name, Number: n.attempt}, n.name, file)
}

func (n *ofNode) find(ctx context.Context) (f found, err error) {
	w, err := n.workflow(ctx, n.q)
	if err != nil {
		return f, err
	}
	f.object = objectOfWorkflow(w)
	steps, err := graph.New(w.Spec)
	if err != nil { // it says so itself
		f.at = where(f.object, nil, nil)
		return f, nil
	}
	wanted, err := n.wanted(w, steps)
	if err != nil {
		return f, err
	}
	n.name = n.called(steps, wanted)
	var known *ledger.Node
	err = n.o.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		f.run, known = nil, nil
		dags, err := n.dags(tx, w, n.q)
		if err != nil {
			return err
		}
		for _, dag := range dags.runs {
			n.attempt = dags.attempt
			f.run = &dag
			if known, err = n.in(tx, dag, wanted); err != nil || known != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	if known == nil && n.q.Node.Name != "" {
		return f, notFound(n.q, "HTCWorkflow %s has sent no node %q", n.q.Name, n.q.Node.Name)
	}
	if known != nil && known.Label != "" {
		n.name = known.StepName + "/" + known.Label
	}
	if known != nil && !known.Waiting() {
		f.proc = &known.Proc
	}
	f.at = whereNode(f.object, f.run, known, n.name)
	return f, nil
}

// called is the name of a node, as far as it is known.
func (n *ofNode) called(steps *graph.Graph, wanted graph.Node) string {
	if wanted.Name != "" {
		return wanted.Name
	}
	return steps.Name(wanted)
}

// wanted is the node that is asked for, as the spec has it.
func (n *ofNode) wanted(w *v1alpha1.HTCWorkflow, steps *graph.Graph) (graph.Node, error) {
	at := n.q.Node
	if at.Name != "" {
		if !steps.Listed() {
			return graph.Node{}, notFound(
				n.q,
				"the nodes of HTCWorkflow %s have no names, as it has no spec.graph: say the step, and the sequence",
				w.Name,
			)
		}
		return graph.Node{Name: at.Name}, nil
	}
	node, err := steps.Find(at.Step, at.Sequence, at.Index, max(w.Sequences(), int(w.Status.Sequences.Total)))
	if err != nil {
		return node, notFound(n.q, "HTCWorkflow %s: %v", w.Name, err)
	}
	return node, nil
}

// in finds it in a DAG; nil if it is none of its nodes.
func (n *ofNode) in(tx *ledger.Tx, dag ledger.Run, wanted graph.Node) (*ledger.Node, error) {
	if n.key != nil && n.key.DAG == dag.Attempt {
		known, err := tx.Node(dag.UID, dag.Attempt, n.key.Node)
		return &known, err
	}
	filter := ledger.NodeFilter{Label: wanted.Name, Limit: 1}
	if wanted.Name == "" {
		step, err := stepOf(tx, dag, n.q.Node.Step)
		if step == nil {
			return nil, err
		}
		filter.Step, filter.Sequence, filter.Item = step, &wanted.Sequence, &wanted.Index
	}
	nodes, err := tx.Nodes(dag.UID, dag.Attempt, filter)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	n.key = &aggregate.NodeKey{DAG: dag.Attempt, Node: nodes[0].Number}
	return &nodes[0], nil
}

// stepOf returns the number of a step in a DAG; nil if it has none of that name. The spec may have it at another place
// since.
func stepOf(tx *ledger.Tx, dag ledger.Run, name string) (*int, error) {
	steps, err := tx.Steps(dag.UID, dag.Attempt)
	if at := slices.IndexFunc(steps, func(s ledger.Step) bool { return s.Name == name }); at >= 0 {
		return &steps[at].Number, err
	}
	return nil, err
}

// whereNode is where for a node; known is nil if it is of none of the DAGs that were sent.
func whereNode(of object, run *ledger.Run, known *ledger.Node, name string) whereabouts {
	switch {
	case run == nil:
		return where(of, nil, nil)
	case known == nil && of.phase.Terminal(), known != nil && known.Status == ledger.StatusFutile && known.Cluster == 0:
		return whereabouts{
			never,
			fmt.Sprintf("%s was never run, because a node before it failed or the workflow was ended", name),
		}
	case known != nil && known.Waiting() && runs(known.JobStatus): // its job has told that
		return whereabouts{waiting, name + " has started, and HTCondor is asked for the number of its job every few seconds"}
	case known == nil, known.Waiting():
		return whereabouts{waiting, name + " waits for the nodes before it"}
	case known.Status != ledger.StatusOpen && known.Fetched == ledger.NotFetched && !run.Confirmed:
		return whereabouts{
			waiting,
			fmt.Sprintf(
				"%s (job %s) has ended, and its output is fetched within some time, at the latest when its DAG has ended",
				name,
				known.JobID(),
			),
		}
	default:
		return where(of, run, &known.Proc)
	}
}
