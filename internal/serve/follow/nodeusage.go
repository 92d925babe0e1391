package follow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/usage"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// NodeUsage finds what the nodes of an attempt have used, step by step, as Usage finds it for jobs.
func (r *Reader) NodeUsage(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	w, err := r.workflow(ctx, q)
	if err != nil {
		return nil, err
	}
	dags, err := r.dagsOf(ctx, w, q)
	if err != nil {
		return nil, err
	}
	if len(dags.runs) == 0 {
		return nil, notYet(q, "no node has been sent yet")
	}
	steps, err := shared(
		ctx,
		r,
		q,
		fmt.Sprint("nodes/", w.UID, "/", dags.attempt),
		func(ctx context.Context) ([]usage.Step, error) {
			return r.steps(ctx, dags)
		},
	)
	if err != nil {
		return nil, err
	}
	return &aggregate.Answer{
		Attempt: dags.attempt, Close: func() {},
		Write: func(_ context.Context, out io.Writer) error {
			lines := json.NewEncoder(out)
			for _, step := range steps {
				if err := lines.Encode(step); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// nodeTally sums up the nodes of a workflow, which are numbered across its DAGs.
type nodeTally struct {
	attempt int
	steps   []*stepTally
	nodes   []talliedNode // of all DAGs, by their numbers
}

type stepTally struct {
	usage.Step
	number int // in spec.steps
	tally  usage.Tally
}

type talliedNode struct {
	ledger.Place
	step  *stepTally
	known bool
}

func (r *Reader) steps(ctx context.Context, dags dags) ([]usage.Step, error) {
	t := &nodeTally{attempt: dags.attempt}
	for _, dag := range dags.runs {
		first, open := len(t.nodes), false
		err := r.eachNode(ctx, dag, ledger.NodeFilter{}, func(n ledger.Node) error {
			t.add(n, first)
			open = open || n.Status == ledger.StatusOpen && n.Cluster > 0
			return nil
		})
		if err != nil {
			return nil, err
		}
		if open && dag.State == ledger.Submitted {
			r.askAbout(ctx, dag, t, first)
		}
	}
	return t.reports(), nil
}

// add counts a node. Its number is that in its DAG, whose first one has this number. What it takes over from an earlier
// attempt has used nothing in this one.
func (t *nodeTally) add(n ledger.Node, first int) {
	for len(t.nodes) <= first+n.Number {
		t.nodes = append(t.nodes, talliedNode{})
	}
	if n.Source == ledger.SourceCarried {
		return
	}
	at := slices.IndexFunc(t.steps, func(s *stepTally) bool { return s.Step.Step == n.StepName })
	if at < 0 {
		at = len(t.steps)
		s := &stepTally{number: n.Step}
		s.Step.Step, s.Attempt = n.StepName, t.attempt
		s.tally.Name = func(number int) string { return "job " + placeOf(t.nodes[number].Place) }
		t.steps = append(t.steps, s)
	}
	s := t.steps[at]
	s.Jobs++
	t.nodes[first+n.Number] = talliedNode{Place: n.Place, step: s, known: n.Usage != ""}
	if n.Usage != "" {
		s.Ended++
		s.tally.Add(first+n.Number, usage.Parse(n.Usage))
	}
}

// askAbout adds what HTCondor's queue says of a DAG's nodes that have not ended.
func (r *Reader) askAbout(ctx context.Context, dag ledger.Run, t *nodeTally, first int) {
	tag := condor.Tag{UID: dag.UID, Attempt: dag.Attempt}
	question := schedd.Query{Where: tag.NodesConstraint(), Nodes: true}
	asked, unknown := r.queued(ctx, dag, question, func(j condor.Job, used usage.Use) {
		number := first + j.Node.Number
		if j.Node.Number < 0 || number >= len(t.nodes) {
			return
		}
		n := &t.nodes[number]
		if n.known || n.step == nil {
			return
		}
		n.known = true
		n.step.tally.Add(number, used)
		counted(&n.step.Report, j)
	})
	for _, n := range t.nodes[first:] {
		if n.step != nil {
			n.step.Asked, n.step.Unknown = cmp.Or(asked, n.step.Asked), cmp.Or(unknown, n.step.Unknown)
		}
	}
}

// reports returns the summaries, in the order of the steps.
func (t *nodeTally) reports() (all []usage.Step) {
	slices.SortStableFunc(t.steps, func(a, b *stepTally) int { return a.number - b.number })
	for _, s := range t.steps {
		if s.Usage = s.tally.Usage(); s.Usage != nil {
			s.Nodes = map[int32]string{}
			for _, used := range s.Each() {
				s.Nodes[used.WorstProc] = placeOf(t.nodes[used.WorstProc].Place)
			}
		}
		all = append(all, s.Step)
	}
	return all
}

// placeOf names a node within its step: its sequence and the number within forEach, or its name in spec.graph.
func placeOf(p ledger.Place) string {
	switch {
	case p.Label != "":
		return p.Label
	case p.Sequence == ledger.AllSequences:
		return fmt.Sprint("all/", p.Item)
	}
	return fmt.Sprint(p.Sequence, "/", p.Item)
}
