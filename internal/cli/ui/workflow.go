package ui

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// workflowView is the page about an HTCWorkflow.
type workflowView struct {
	ref
	Phase      string
	Look       look
	Note       string
	Counts     counts
	Sequences  string
	Facts      []fact
	Operations []operation
	Conditions []told
	Events     []happening
	Graph      *drawing // nil: the steps are no graph, and a condition says why
	Listed     *nodesDrawing
	Grid       grid
	Failures   []failure
	More       int
	Step       string // of which nodes are shown
	Nodes      []nodeView
	Metrics    []metric
	Archive    string
	Sorry      []string
}

// nodeView is a node of a step.
type nodeView struct {
	aggregate.Node
	Who   string
	Look  look
	How   string
	Logs  []fact
	Files []file
}

// workflowFacts is what was asked for the page.
type workflowFacts struct {
	flow    *v1alpha1.HTCWorkflow
	events  []corev1.Event
	attempt int // 0: none was sent
	from    int // the first sequence in the grid
	step    string
	node    string                         // of spec.graph; "": all of the step
	states  map[string]aggregate.NodeState // of those
	which   *int                           // sequence of the nodes that are shown; nil: all of them
	cells   map[place]aggregate.NodeState
	failed  []aggregate.Node
	nodes   []aggregate.Node // of the step, and of that sequence
	files   map[string][]aggregate.File
	tables  map[string][]string // of spec.graph
	sorry   []string
}

// place is a cell of the grid.
type place struct {
	step     string
	sequence int
}

// mostNodes is how many nodes of a step are described.
const mostNodes = 50

func (s *Server) showWorkflow(ctx context.Context, r ref, object any, q url.Values) shown {
	f := workflowFacts{
		flow:    object.(*v1alpha1.HTCWorkflow),
		attempt: numberIn(q, "attempt", 0),
		from:    numberIn(q, "from", 0),
		step:    q.Get("step"),
		node:    q.Get("node"),
		states:  map[string]aggregate.NodeState{},
		cells:   map[place]aggregate.NodeState{},
	}
	if n := numberIn(q, "sequence", -1); n >= 0 {
		f.which = &n
	}
	ask := func(err error) {
		if err != nil {
			f.sorry = append(f.sorry, words(err))
		}
	}
	var err error
	f.events, err = s.events(ctx, r, f.flow)
	ask(err)
	f.tables, err = s.tables(ctx, f.flow)
	ask(err)
	header, err := lines(ctx, s, r, "log/nodes", url.Values{"attempt": {strconv.Itoa(f.attempt)}}, f.take)
	ask(err)
	if err == nil {
		f.attempt = attemptIn(header)
	}
	if len(f.nodes) > 0 && len(f.nodes) <= mostNodes {
		f.files = map[string][]aggregate.File{}
		p := url.Values{"attempt": {strconv.Itoa(f.attempt)}, "step": {f.step}}
		if f.which != nil {
			p.Set("sequence", strconv.Itoa(*f.which))
		}
		// Nodes of which nothing is here yet have none.
		_, _ = lines(
			ctx,
			s,
			r,
			"log/files",
			p,
			func(one aggregate.File) { f.files[one.Node] = append(f.files[one.Node], one) },
		)
	}
	return shown{f.flow.Name, s.base().workflow(viewOfWorkflow(r, f))}
}

// take looks at one node of many.
func (f *workflowFacts) take(n aggregate.Node) {
	if n.Sequence != nil {
		at := place{n.Step, *n.Sequence}
		if before, there := f.cells[at]; there {
			f.cells[at] = worst(before, n.State)
		} else {
			f.cells[at] = n.State
		}
	}
	if n.Name != "" {
		f.states[n.Name] = n.State
	}
	if n.State == aggregate.NodeFailed && len(f.failed) < mostFailures {
		f.failed = append(f.failed, n)
	}
	wanted := f.step != "" && n.Step == f.step && (f.which == nil || n.Sequence != nil && *n.Sequence == *f.which) &&
		(f.node == "" || n.Name == f.node)
	if wanted && len(f.nodes) < mostNodes {
		f.nodes = append(f.nodes, n)
	}
}

// viewOfWorkflow is pure.
func viewOfWorkflow(r ref, f workflowFacts) workflowView {
	w, s := f.flow, f.flow.Status
	v := workflowView{
		ref:        r,
		Phase:      phase(s.Phase),
		Note:       note(s.Reason, s.Message),
		Counts:     countsOfNodes(s.Nodes),
		Facts:      factsOfWorkflow(w),
		Operations: operationsOf(r, w, w.Spec.Suspend, endedWorkflow(w), int(s.Nodes.Failed)),
		Conditions: tell(s.Conditions),
		Events:     happened(f.events),
		Step:       f.step,
		Sorry:      f.sorry,
	}
	v.Look = lookOfPhase(v.Phase)
	v.Sequences = sequencesOf(s.Sequences)
	for _, m := range s.Metrics {
		v.Metrics = append(v.Metrics, metricOf(m))
	}
	g, err := graph.New(w.Spec)
	if err != nil {
		v.Sorry = append(v.Sorry, words(err))
		return v
	}
	drawn := draw(r, g, s.Steps)
	v.Graph = &drawn
	if nodes := listedNodes(f.tables, g); nodes != nil {
		listed := drawNodes(r, g, nodes, f.states, f.node)
		v.Listed = &listed
	}
	v.Grid = gridOfSequences(r, g, f, max(w.Sequences(), int(s.Sequences.Total)))
	for _, n := range f.failed {
		v.Failures = append(v.Failures, failureOfNode(r, g, f.attempt, n))
	}
	v.More = max(0, int(s.Nodes.Failed)-len(v.Failures))
	for _, n := range f.nodes {
		v.Nodes = append(v.Nodes, nodeOf(r, g, f, n))
	}
	if s.Nodes.Done+s.Nodes.Failed > 0 && f.attempt > 0 {
		v.Archive = "/archive" + linkTo(r) + "?attempt=" + strconv.Itoa(f.attempt)
	}
	return v
}

func endedWorkflow(w *v1alpha1.HTCWorkflow) bool {
	return w.Status.Phase.Terminal() && w.Status.ObservedGeneration >= w.Generation &&
		(w.Rerun() == "" || w.Rerun() == w.Status.Rerun)
}

func sequencesOf(s v1alpha1.SequenceCounts) string {
	return fmt.Sprintf(
		"%s: %d at work, %d succeeded, %d failed",
		number(int(s.Total), "sequence"),
		s.Active,
		s.Succeeded,
		s.Failed,
	)
}

func factsOfWorkflow(w *v1alpha1.HTCWorkflow) []fact {
	s := w.Status
	most := ""
	if s.MaxConcurrent > 0 {
		most = strconv.Itoa(int(s.MaxConcurrent))
	}
	return facts(
		fact{
			"Namespace",
			w.Namespace,
		},
		fact{"Steps", strconv.Itoa(len(w.Spec.Steps))},
		fact{"Attempt", strconv.Itoa(int(s.Attempt))},
		fact{"Schedd", s.Schedd},
		fact{
			"DAGMan's jobs",
			strings.Join(s.JobID, ", "),
		},
		fact{"At work at once, by a rule", most},
		fact{"Failure policy", string(w.Spec.FailurePolicy)},
		fact{
			"Resumes from",
			string(w.Spec.Resume),
		},
		fact{"Exit code", codeOf(s.ExitCode)},
		fact{"Result", textOf(s.Result)},
		fact{"Created", moment(w.CreationTimestamp.Time)},
		fact{"Started", momentOf(s.StartTime)},
		fact{"Ended", momentOf(s.CompletionTime)},
	)
}

// gridOfSequences has a row for each sequence, with a cell for each step that runs in it. A graph that lists its nodes
// has none.
func gridOfSequences(r ref, g *graph.Graph, f workflowFacts, total int) grid {
	link := linkTo(r) + "?attempt=" + strconv.Itoa(f.attempt)
	gr := grid{From: f.from, Total: total, Link: link + "&from=" + strconv.Itoa(f.from)}
	for _, s := range g.Steps {
		if !s.All && !s.Final {
			gr.Columns = append(gr.Columns, string(s.Name))
		}
	}
	if len(gr.Columns) == 0 || f.attempt == 0 || g.Listed() {
		return grid{}
	}
	rows := mostCells / len(gr.Columns)
	last := min(total, f.from+rows)
	unknown := lookOf(aggregate.NodeWaiting).Code
	if f.flow.Status.Phase.Terminal() { // it never was sent
		unknown = '.'
	}
	var cells strings.Builder
	for sequence := f.from; sequence < last; sequence++ {
		for _, step := range gr.Columns {
			if state, known := f.cells[place{step, sequence}]; known {
				cells.WriteByte(lookOf(state).Code)
			} else {
				cells.WriteByte(unknown)
			}
		}
	}
	gr.Cells = cells.String()
	if f.from > 0 {
		gr.Prev = link + "&from=" + strconv.Itoa(max(0, f.from-rows))
	}
	if last < total {
		gr.Next = link + "&from=" + strconv.Itoa(last)
	}
	return gr
}

// whichNode are the parameters that name a node.
func whichNode(n aggregate.Node) string {
	sequence := "all"
	if n.Sequence != nil {
		sequence = strconv.Itoa(*n.Sequence)
	}
	return "step=" + n.Step + "&sequence=" + sequence
}

// nameOfNode is that of its output; just the step's for one that is of an earlier spec.
func nameOfNode(g *graph.Graph, n aggregate.Node) string {
	for i, s := range g.Steps {
		if string(s.Name) == n.Step {
			sequence := graph.AllSequences
			if n.Sequence != nil {
				sequence = *n.Sequence
			}
			return g.Name(graph.Node{Step: i, Sequence: sequence, Index: n.Index, Name: n.Name})
		}
	}
	return n.Step
}

func logOfNode(r ref, attempt int, n aggregate.Node, stream string) string {
	return logLink(r, attempt, whichNode(n)+"&index="+strconv.Itoa(n.Index), stream)
}

func failureOfNode(r ref, g *graph.Graph, attempt int, n aggregate.Node) failure {
	x := failure{
		Who:     nameOfNode(g, n),
		How:     how(n.ExitCode, n.Signal, n.Reason),
		Message: n.Message,
		Stderr:  n.Stderr,
		Link: fmt.Sprintf(
			"%s?attempt=%d&%s",
			linkTo(r),
			attempt,
			whichNode(n),
		),
		Log: logOfNode(r, attempt, n, "stdout"),
	}
	if x.Message == x.How {
		x.Message = ""
	}
	return x
}

func nodeOf(r ref, g *graph.Graph, f workflowFacts, n aggregate.Node) nodeView {
	v := nodeView{Node: n, Who: nameOfNode(g, n), Look: lookOf(n.State), How: how(n.ExitCode, n.Signal, n.Reason)}
	if n.JobID != "" {
		for _, stream := range []string{"stdout", "stderr"} {
			v.Logs = append(v.Logs, fact{stream, logOfNode(r, f.attempt, n, stream)})
		}
	}
	v.Files = filesOf(r, f.attempt, f.files[v.Who], whichNode(n))
	return v
}
