package graph

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Graph is a workflow's steps, checked and in order.
type Graph struct {
	Steps  []Step  // those of spec.steps, and that of spec.finally, if there is one, as the last
	Levels [][]int // the steps of each DAG, by their numbers in Steps, each after those that it needs

	spec    v1alpha1.HTCWorkflowSpec
	edges   []string // of spec.graph, as Read returns them
	filled  bool
	parents [][]int // of its nodes
	loose   [][]int // those of the parents that must only have ended
}

// Step is one step.
type Step struct {
	v1alpha1.StepWork
	Needs          []int  // the steps that must have succeeded before, ascending; none for finally
	Pulls          []Pull // of StepWork.Pull
	Level          int
	All            bool // it runs once for all sequences, not in each
	Final          bool // it is spec.finally
	Indexed        bool // it has forEach
	Each           int  // how many nodes it has, in each sequence or for all; 0: its table has not been read
	AlwaysSucceeds bool
	maxFailures    *intstr.IntOrString
	MaxJobs        int    // of job.parallelism or spec.throttle; 0: no limit
	Category       string // of the steps that share MaxJobs; empty: it is the step's alone

	loose      map[int]bool     // those of Needs that must only have ended
	names      []string         // of its nodes, if they are those of spec.graph
	priorities []*int           // the same
	items      []string         // the variables of each node, if it has such
	by         map[int][]string // by which variables its nodes are paired with those of a step that it needs
	pairs      map[int][][]int  // which of these each node needs, by index
	table      *Table           // with its items, if a step before writes it
}

// Pull is a file of a step before.
type Pull struct {
	From    int // number of the step
	Path    string
	Several bool // a node gets it from several nodes, or might: the files lie at <place of their node>/<path>
	Earlier bool // the step is of an earlier level: htcd brings the files
}

// New returns the graph of a spec, which the apiserver has accepted. Its errors say what to change.
func New(spec v1alpha1.HTCWorkflowSpec) (*Graph, error) {
	g := &Graph{spec: spec}
	number, err := g.add()
	if err != nil {
		return nil, err
	}
	if g.Listed() {
		err = g.list()
	} else {
		err = g.arrange(number)
	}
	if err != nil {
		return nil, err
	}
	if err := g.mark(number); err != nil {
		return nil, err
	}
	if err := g.checkURLs(); err != nil {
		return nil, err
	}
	return g, g.pull(number)
}

// arrange puts the steps into levels by what they need.
func (g *Graph) arrange(number map[v1alpha1.StepName]int) error {
	if err := g.need(number); err != nil {
		return err
	}
	order, err := g.order()
	if err != nil {
		return err
	}
	if err := g.made(number); err != nil {
		return err
	}
	g.level(order)
	if err := g.checkCompletions(); err != nil {
		return err
	}
	return g.checkLoose()
}

// add lists the steps; their numbers are by name.
func (g *Graph) add() (number map[v1alpha1.StepName]int, err error) {
	number = map[v1alpha1.StepName]int{}
	for i, s := range g.spec.Steps {
		if _, twice := number[s.Name]; twice {
			return nil, fmt.Errorf("spec.steps[%d]: there are two steps %q: give each a name of its own", i, s.Name)
		}
		number[s.Name] = i
		step := Step{StepWork: s.StepWork, All: s.Pairing == v1alpha1.PairAll, Each: 1, maxFailures: s.MaxFailures}
		if s.MaxFailures != nil && s.ForEach == nil && !g.Listed() {
			return nil, fmt.Errorf(
				"spec.steps[%d].maxFailures: it is about several jobs, and the step %q has one in each sequence: add forEach, or write sequences.complete or alwaysSucceed instead",
				i,
				s.Name,
			)
		}
		if s.ForEach != nil {
			step.Indexed, step.Each = true, max(int(s.ForEach.Count), len(s.ForEach.Items))
		}
		g.Steps = append(g.Steps, step)
	}
	if f := g.spec.Finally; f != nil {
		if _, twice := number[f.Name]; twice {
			return nil, fmt.Errorf("spec.finally: there is a step %q already: give it another name", f.Name)
		}
		number[f.Name] = len(g.Steps)
		g.Steps = append(g.Steps, Step{StepWork: *f, All: true, Each: 1, Final: true})
	}
	return number, nil
}

// need sets what each step needs.
func (g *Graph) need(number map[v1alpha1.StepName]int) error {
	for i, s := range g.spec.Steps {
		if s.Needs == nil && i > 0 {
			g.Steps[i].Needs = []int{i - 1}
		}
		for _, need := range s.Needs {
			name := need.Step
			k, known := number[name]
			switch {
			case need.Wrong != "":
				return fmt.Errorf(
					"spec.steps[%d].needs: expected a step's name, or {step: NAME, by: [VARIABLE], outcome: Any}, found %s",
					i,
					need.Wrong,
				)
			case !known:
				return fmt.Errorf("spec.steps[%d].needs: %w", i, g.unknown(name))
			case k == i:
				return fmt.Errorf("spec.steps[%d].needs: the step %q needs itself", i, name)
			case g.Steps[k].Final:
				return fmt.Errorf(
					"spec.steps[%d].needs: %q is spec.finally, which runs when everything else has ended",
					i,
					name,
				)
			case slices.Contains(g.Steps[i].Needs, k):
				return fmt.Errorf("spec.steps[%d].needs: %q stands there twice", i, name)
			}
			g.Steps[i].Needs = append(g.Steps[i].Needs, k)
			if need.Any {
				g.Steps[i].loosen(k)
			}
			if len(need.By) == 0 {
				continue
			}
			if err := g.pairable(i, k, need.By); err != nil {
				return fmt.Errorf("spec.steps[%d].needs: %w", i, err)
			}
		}
		slices.Sort(g.Steps[i].Needs)
	}
	return nil
}

// mark sets what other fields of the spec say of steps.
func (g *Graph) mark(number map[v1alpha1.StepName]int) error {
	for i, name := range g.spec.AlwaysSucceed {
		k, known := number[name]
		if !known {
			return fmt.Errorf("spec.alwaysSucceed[%d]: %w", i, g.unknown(name))
		}
		g.Steps[k].AlwaysSucceeds = true
	}
	return g.limit(number)
}

// limit sets how many jobs of each step may be in the queue.
func (g *Graph) limit(number map[v1alpha1.StepName]int) error {
	for i, s := range g.Steps {
		if n := s.Job.Parallelism; n != nil {
			g.Steps[i].MaxJobs = int(*n)
		}
	}
	if g.spec.Throttle == nil {
		return nil
	}
	for name, limit := range g.spec.Throttle.PerStep {
		k, known := number[v1alpha1.StepName(name)]
		switch {
		case !known:
			return fmt.Errorf("spec.throttle.perStep: %w", g.unknown(v1alpha1.StepName(name)))
		case g.Steps[k].MaxJobs > 0:
			return fmt.Errorf(
				"spec.throttle.perStep: the step %q has job.parallelism, which says the same: keep one of them",
				name,
			)
		}
		g.Steps[k].MaxJobs = int(limit)
	}
	for n, shared := range g.spec.Throttle.Together {
		for _, name := range shared.Steps {
			k, known := number[name]
			switch {
			case !known:
				return fmt.Errorf("spec.throttle.together[%d]: %w", n, g.unknown(name))
			case g.Steps[k].MaxJobs > 0:
				return fmt.Errorf(
					"spec.throttle.together[%d]: the step %q has a limit already, and DAGMan knows one for each: leave it out here or there",
					n,
					name,
				)
			}
			g.Steps[k].MaxJobs, g.Steps[k].Category = int(shared.MaxJobs), fmt.Sprintf("t%d", n)
		}
	}
	return nil
}

func (g *Graph) unknown(name v1alpha1.StepName) error {
	var names []string
	for _, s := range g.Steps {
		names = append(names, string(s.Name))
	}
	return fmt.Errorf("there is no step %q: the steps are %s", name, strings.Join(names, ", "))
}
