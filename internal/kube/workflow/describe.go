package workflow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

// plannedDAG is a DAG before it is sent.
type plannedDAG struct {
	graph     *graph.Graph
	level     int
	attempt   int
	steps     []int // those that have nodes, by their numbers in graph
	nodes     []graph.Node
	items     []string            // of all sequences; none if they have no variables
	tables    map[string][]string // items of steps, by their names
	digest    string              // of the tables that these are from
	counted   bool                // some of them were read just now, as earlier DAGs have written them
	sequences []int               // those that go on
	// how many there may be with those that take the place of others; 0: there are none such
	mayBegin int
	atWork   int // how many of them at a time; 0: all
	// on which sequences repeat steps, or are added; none: it is the first DAG of its level
	occasions []ledger.Occasion
	brought   []bringing
	inputsOf  map[int][]string // directories of the inputs of each step
	ended     string           // variables of finally: how the others ended
	kept      kept
}

// hash identifies which nodes a DAG of a spec has, with which variables, and which of them do not run again.
func (p plannedDAG) hash() string {
	h := sha256.New()
	for i, n := range p.nodes {
		fmt.Fprintf(h, "%d %d %d %t\n", n.Step, n.Sequence, n.Index, p.kept.has(i))
	}
	for _, item := range p.items {
		fmt.Fprintf(h, "%q\n", item)
	}
	for _, step := range slices.Sorted(maps.Keys(p.tables)) {
		fmt.Fprintf(h, "%s\n", step)
		for _, item := range p.tables[step] {
			fmt.Fprintf(h, "%q\n", item)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// planDAG says what the DAG of a level consists of. Its errors of kind schedd.Refused are about the spec.
func (c *Controller) planDAG(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	s Situation,
	level int,
	recorded *ledger.Run,
) (p plannedDAG, err error) {
	p.level, p.atWork, p.attempt = level, s.atWork(), s.Attempt
	if recorded == nil && s.due() {
		p.attempt++
	}
	if p.graph, err = graph.New(w.Spec); err != nil {
		return p, condor.Refusal("%w", err)
	}
	if level >= len(p.graph.Levels) {
		return p, condor.Refusal("the spec has no level %d any more", level)
	}
	total, err := c.readTables(ctx, w, s, recorded, &p)
	if err != nil {
		return p, err
	}
	if completions(w) > 0 {
		p.mayBegin = total
	}
	o, err := c.outcome(ctx, s, begunAtFirst(w, total))
	if err != nil {
		return p, err
	}
	if err := c.readMade(s, o, &p); err != nil {
		return p, err
	}
	if err := p.graph.Check(total); err != nil {
		return p, condor.Refusal("%w", err)
	}
	if err := checkRules(w.Spec.Rules); err != nil {
		return p, condor.Refusal("%w", err)
	}
	if p.occasions, err = c.occasions(ctx, s, recorded); err != nil {
		return p, err
	}
	if len(p.occasions) > 0 {
		o.Sequences = sequencesOf(p.occasions)
	}
	p.sequences, p.nodes = o.Sequences, p.graph.Nodes(level, o)
	for _, step := range p.graph.Levels[level] {
		if slices.ContainsFunc(p.nodes, func(n graph.Node) bool { return n.Step == step }) {
			p.steps = append(p.steps, step)
		}
	}
	if len(p.occasions) > 0 {
		p.kept, err = c.keepsUnrepeated(ctx, s, p, recorded)
	} else {
		p.kept, err = c.keeps(ctx, w, s, p, begunAtFirst(w, total), recorded)
	}
	if err != nil {
		return p, err
	}
	if s.final(level) {
		if p.ended, err = c.ended(ctx, s); err != nil {
			return p, err
		}
	}
	return p, p.list(w)
}

// readTables sets the variables of sequences and steps, and returns how many sequences there are. What stands elsewhere
// is read once in an attempt; each of its DAGs is recorded with the tables that were read by then.
func (c *Controller) readTables(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	s Situation,
	recorded *ledger.Run,
	p *plannedDAG,
) (sequences int, err error) {
	if recorded == nil && len(s.DAGs) > 0 && !s.due() {
		recorded = tabled(s.runs())
	}
	if recorded != nil && recorded.SpecHash == w.SpecHash() && recorded.ItemsDigest != "" {
		p.digest = recorded.ItemsDigest
		err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
			if p.items, err = tx.Items(recorded.UID, recorded.Attempt); err == nil {
				p.tables, err = tx.Tables(recorded.UID, recorded.Attempt)
			}
			return err
		})
	} else {
		err = c.readSpec(ctx, w, p)
	}
	p.graph.Fill(p.tables)
	if len(p.items) > 0 {
		return len(p.items), err
	}
	return w.Sequences(), err
}

// readSpec reads all tables that a spec has, or names.
func (c *Controller) readSpec(ctx context.Context, w *v1alpha1.HTCWorkflow, p *plannedDAG) (err error) {
	var digests []string
	var unread error
	b := inputs.Bringer{ConfigMaps: c.ConfigMaps, Jobs: c.Jobs, Store: c.JobOutput}
	p.items, p.tables, err = graph.Read(w.Spec, checkVariable, func(from v1alpha1.ItemsFrom) ([]byte, error) {
		text, digest, err := b.Table(ctx, asJob(w), from)
		digests, unread = append(digests, digest), noHTCJob(err, p.graph.Steps, from.JobRef)
		return text, unread
	})
	switch {
	case unread != nil:
		return unread
	case err != nil:
		return condor.Refusal("%w", err)
	}
	p.digest = strings.Join(digests, " ")
	if len(digests) > 1 {
		sum := sha256.Sum256([]byte(p.digest))
		p.digest = "sha256:" + hex.EncodeToString(sum[:])
	}
	return nil
}

// own reports whether a variable is one that htcd sets in each node.
func own(name string) bool {
	return slices.Contains([]string{"jobid", "outpath", "registry", "pull_tag", "push_tag"}, name)
}

func checkVariable(name, value string) error {
	if own(name) {
		return fmt.Errorf("%s is set by htcd: choose another name", name)
	}
	return submit.CheckVariable(name, value)
}

// outcome returns what became of the DAGs of the attempt that goes on; of one that begins, the first sequences.
func (c *Controller) outcome(ctx context.Context, s Situation, first int) (graph.Outcome, error) {
	var o graph.Outcome
	before := s.DAGs
	if s.due() {
		before = nil // a new attempt begins
	}
	if n := len(before); n > 0 && before[n-1].Run.State == ledger.Intent {
		before = before[:n-1] // it is this DAG
	}
	o.Sequences = make([]int, first)
	for i := range o.Sequences {
		o.Sequences[i] = i
	}
	if len(before) == 0 {
		return o, nil
	}
	o.Failed = Situation{Graph: s.Graph, DAGs: before}.failedSteps()
	for _, d := range before {
		if !s.hasSequences(d) {
			continue
		}
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
			some, err := tx.Sequences(d.Run.UID, d.Run.Attempt, ledger.StatusSucceeded, 0, graph.MostNodes)
			if !d.Repeats {
				o.Sequences = nil
			}
			o.Sequences = append(o.Sequences, some...)
			return err
		})
		if err != nil {
			return o, err
		}
	}
	slices.Sort(o.Sequences)
	return o, nil
}

// hasSequences reports whether a DAG was sent with steps of sequences.
func (s Situation) hasSequences(d DAG) bool {
	return slices.ContainsFunc(d.Steps, func(step ledger.StepCounts) bool {
		return step.Number < len(s.Graph.Steps) && !s.Graph.Steps[step.Number].All
	})
}

// describe says the DAG in HTCondor's terms. Its errors of kind schedd.Refused are about the spec; while a credential
// is missing the error is an *inputs.Waiting.
func (c *Controller) describe(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	by pool.Pool,
	run ledger.Run,
	p plannedDAG,
) (submit.DAG, error) {
	d := submit.DAG{Tag: tag(w, run.Attempt), BatchName: w.Name}
	d.Tag.SpecHash, d.Tag.Pool, d.Tag.Nodes = w.SpecHash(), by.Name, p.hash()
	d.Tag.Repeats = writeRepeats(p.occasions)
	d.Tag.Creator = c.Site.CreatorOf(w.Annotations)
	if t := w.Spec.Throttle; t != nil {
		d.MaxIdle = valueOf(t.MaxIdle)
	}
	number := map[int]int{} // in the DAG, of a step
	for k, i := range p.steps {
		number[i] = k
	}
	for _, i := range p.steps {
		step, err := c.describeStep(ctx, w, by, run, p, i, number)
		if err != nil {
			return d, err
		}
		d.Steps = append(d.Steps, step)
	}
	d.MaxJobs = maxJobs(w, p.graph, p.steps, p.atWork)
	if !resizes(w) {
		d.FactoryAbove = c.Site.FactoryAbove
	}
	for i, n := range p.nodes {
		node := submit.DAGNode{
			Step:      number[n.Step],
			Index:     n.Index,
			Place:     p.graph.Place(n),
			Parents:   n.Parents,
			Ended:     n.Ended,
			Variables: p.variables(n),
			Done:      p.kept.has(i),
			Pulls:     p.pulls(n, p.kept.has(i)),
			Priority:  p.graph.Priority(n),
		}
		if !node.Done {
			node.Inputs = append(p.inputs(n), p.given(n)...)
		}
		d.Nodes = append(d.Nodes, node)
	}
	return d, nil
}

func valueOf(n *int32) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

func (c *Controller) describeStep(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	by pool.Pool,
	run ledger.Run,
	p plannedDAG,
	i int,
	number map[int]int,
) (submit.DAGStep, error) {
	g := p.graph
	step, job := g.Steps[i], stepJob(w, g, i)
	d, err := c.Site.Describe(job, by, run.Attempt, nil)
	if err != nil {
		return submit.DAGStep{}, condor.Refusal("step %s: %w", step.Name, err)
	}
	if d.Traceparent != "" {
		d.Traceparent = traceparent(run)
	}
	for k, o := range d.Outputs {
		d.Outputs[k].URL = ofAttempt(o.URL, p.attempt)
	}
	s := submit.DAGStep{
		Description:    d,
		Name:           string(step.Name),
		MaxJobs:        step.MaxJobs,
		Category:       step.Category,
		MayFail:        step.MayFail(),
		AlwaysSucceeds: step.AlwaysSucceeds,
		Timed:          timed(w, step.Name),
		Keeps:          pulledLater(g, i),
	}
	if resumes(w) || repeats(w) || completions(w) > 0 {
		s.Keeps = pulled(g, i, func(graph.Pull) bool { return true })
	}
	for _, code := range step.RetryExitCodes {
		s.RetryExitCodes = append(s.RetryExitCodes, int(code))
	}
	for _, code := range step.AbortExitCodes {
		s.AbortExitCodes = append(s.AbortExitCodes, int(code))
	}
	for _, pull := range step.Pulls {
		if !pull.Earlier {
			s.Pulls = append(s.Pulls, submit.Pull{From: number[pull.From], Path: pull.Path, Several: pull.Several})
		}
	}
	if !p.runs(i) {
		return s, nil // one that is missing prevents nothing
	}
	if err := c.addCredentials(ctx, job, by, run, i, &s); err != nil {
		if condor.KindOf(err) == condor.Refused {
			err = condor.Refusal("step %s: %w", step.Name, err)
		}
		return s, err
	}
	return s, nil
}

// pulledLater lists what steps of later DAGs pull from a step.
func pulledLater(g *graph.Graph, i int) []string {
	return pulled(g, i, func(p graph.Pull) bool { return p.Earlier })
}

// pulled lists what such pulls bring from a step, and the tables that it writes for others.
func pulled(g *graph.Graph, i int, such func(graph.Pull) bool) (paths []string) {
	for k, step := range g.Steps {
		if t := g.TableOf(k); t != nil && t.From == i && !slices.Contains(paths, t.Path) {
			paths = append(paths, t.Path)
		}
		for _, pull := range step.Pulls {
			if such(pull) && pull.From == i && !slices.Contains(paths, pull.Path) {
				paths = append(paths, pull.Path)
			}
		}
	}
	return paths
}

// stepJob returns a step as the HTCJob that it would be on its own. What it pushes and pulls by registries is an output
// and inputs without a path.
func stepJob(w *v1alpha1.HTCWorkflow, g *graph.Graph, i int) *v1alpha1.HTCJob {
	step := g.Steps[i].StepWork
	job, work := asJob(w), step.Job
	job.Spec.Script = v1alpha1.Script{Program: work.Script}
	job.Spec.HTCOpts, job.Spec.Resources, job.Spec.AccountingGroup, job.Spec.Requirements =
		work.HTCOpts, work.Resources, work.AccountingGroup, work.Requirements
	job.Spec.SuccessExitCodes, job.Spec.MemoryRetry = work.SuccessExitCodes, work.MemoryRetry
	job.Spec.Execution, job.Spec.Handling, job.Spec.Deadlines = work.Execution, work.Handling, work.Deadlines
	job.Spec.Interactive, job.Spec.KeepOnFailure = w.Spec.Interactive || work.Interactive, work.KeepOnFailure
	job.Spec.ActiveDeadlineSeconds = cmp.Or(work.ActiveDeadlineSeconds, w.Spec.ActiveDeadlineSeconds)
	job.Spec.Inputs, job.Spec.Credentials = work.Inputs, work.Credentials
	job.Spec.Retries, job.Spec.Priority = step.Retries, step.Priority
	for name, value := range work.Environment {
		if job.Spec.Environment == nil {
			job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{}
		}
		job.Spec.Environment[name] = v1alpha1.EnvironmentValue(value)
	}
	for name, value := range registryVariables(g, i) {
		if job.Spec.Environment == nil {
			job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{}
		}
		job.Spec.Environment[name] = v1alpha1.EnvironmentValue(value)
	}
	for _, o := range work.Outputs {
		job.Spec.Outputs = append(job.Spec.Outputs, v1alpha1.Output{Path: o.Path, URL: o.URL})
	}
	one := g.JobID(graph.Node{Step: i})
	if g.Steps[i].All {
		one = g.JobID(graph.Node{Step: i, Sequence: graph.AllSequences})
	}
	if step.Push != nil {
		job.Spec.Outputs = append(
			job.Spec.Outputs,
			v1alpha1.Output{Artifact: reference(step.Push.Artifact, one, tagOf(step))},
		)
	}
	job.Spec.Inputs = slices.Clip(job.Spec.Inputs)
	for _, pull := range step.Pull {
		if pull.Artifact != "" {
			job.Spec.Inputs = append(job.Spec.Inputs, v1alpha1.Input{Artifact: reference(pull.Artifact, one, pull.Tag)})
		}
	}
	return job
}

// asJob returns what pools know of a workflow.
func asJob(w *v1alpha1.HTCWorkflow) *v1alpha1.HTCJob {
	return &v1alpha1.HTCJob{
		TypeMeta: metav1.TypeMeta{Kind: v1alpha1.WorkflowKind}, ObjectMeta: w.ObjectMeta,
		Spec: v1alpha1.HTCJobSpec{Pool: w.Spec.Pool}, Status: v1alpha1.HTCJobStatus{Schedd: w.Status.Schedd},
	}
}

// tag is what the ads of a DAG carry.
func tag(w *v1alpha1.HTCWorkflow, ordinal int) condor.Tag {
	return condor.Tag{UID: string(w.UID), Attempt: ordinal, Namespace: w.Namespace, Name: w.Name}
}

// variables returns those of a node: its sequence's, and htcd's.
func (p plannedDAG) variables(n graph.Node) string {
	step := p.graph.Steps[n.Step]
	lines := p.graph.Variables(n, p.items)
	if step.Final {
		lines = p.ended + lines
	}
	if step.Push != nil && step.Indexed {
		lines += fmt.Sprintf("push_tag=%s-%d\n", tagOf(step.StepWork), n.Index)
	}
	return lines
}

// pulls returns the nodes that run in the same DAG that a node pulls from, for each of its pulls that is not from an
// earlier one.
func (p plannedDAG) pulls(n graph.Node, done bool) (pulls [][]int) {
	for i, pull := range p.graph.Steps[n.Step].Pulls {
		if pull.Earlier {
			continue
		}
		from := n.Pulls[i]
		if done {
			from = nil
		} else if slices.ContainsFunc(from, p.kept.has) {
			from = slices.DeleteFunc(slices.Clone(from), p.kept.has)
		}
		pulls = append(pulls, from)
	}
	return pulls
}

// rows returns the steps and nodes as the ledger has them.
func (p prepared) rows() (steps []ledger.Step, places []ledger.Place) {
	for k, i := range p.steps {
		step := ledger.Step{Number: i, Name: string(p.graph.Steps[i].Name), MayFail: p.graph.Steps[i].MayFail()}
		if k < len(p.sandbox.Steps) {
			step.Deferred, step.Effective = p.sandbox.Steps[k].Deferred, pool.Write(
				p.pool.Effective(p.sandbox.Steps[k].Requests),
			)
		}
		steps = append(steps, step)
	}
	for _, n := range p.nodes {
		places = append(places, ledger.Place{Step: n.Step, Sequence: n.Sequence, Item: n.Index, Label: n.Name})
	}
	return steps, places
}
