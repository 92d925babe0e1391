package chaos

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// WorkflowShape is a kind of HTCWorkflow and what is done to it.
type WorkflowShape struct {
	Name    string
	Place   Place
	Flow    Flow
	Edited  *Flow // what it is changed to once it has ended
	Deleted bool  // while it is on its way or running
	Paused  bool  // suspended while it is on its way or running, and resumed a while later
}

// Flow is what an HTCWorkflow runs and how that must end.
type Flow struct {
	Sequences int
	Complete  int
	Steps     []FlowStep // finally is the last, if it has that name
	Policy    v1alpha1.FailurePolicy
	Always    []v1alpha1.StepName
	Phase     v1alpha1.Phase
	Succeeded int // sequences
	Limit     int // sequences at work at a time; 0: any
	Rules     []v1alpha1.Rule
	Repeats   int             // DAGs that a rule adds
	Resumes   bool            // a new attempt goes on from the one before
	Graph     *v1alpha1.Graph // of nodes with names; there is one sequence
	Ends      *int32          // the exitCode with which the first step ends everything when a job of it ends with 9
	Most      int             // with completions: how many sequences may be begun; 0: all are begun
	Numbered  bool            // a sequence has its number as an item, too
	Shared    int             // jobs of the first two steps at once; 0: any
	Idle      int             // jobs that wait for a slot at a time; 0: any
	// Differs has the end of each node, STEP/JOBID or STEP/JOBID/NUMBER, that does not end with 0.
	Differs map[string]End
}

// End is how a node ends.
type End struct {
	Code    int  // that HTCondor sees
	Futile  bool // it never runs
	Stopped bool // htcd removes it, or it never runs
}

// FlowStep is a step. Its script appends a line with its name and a random number to the file "ran" that it has pulled,
// or to what it has pulled from several: only HTCondor brings that back.
type FlowStep struct {
	Name    v1alpha1.StepName
	Pulls   v1alpha1.StepName // empty: none
	Several bool              // it pulls from several nodes
	All     bool
	Each    int // 0: no forEach
	Does    string
	Retries int
	Codes   []int32
	Lines   int               // of the file "ran"
	Table   bool              // what it pulls from writes the table of its jobs
	After   v1alpha1.StepName // the step that must only have ended before; empty: none
	// Files has the variable FILE of each job, of which there are Each; By pairs them with those of Pulls.
	Files    []string
	By       string
	Forgiven string // maxFailures
}

const finallyStep = "finally"

func (s FlowStep) work(place Place) v1alpha1.StepWork {
	source := `echo "` + string(s.Name) + ` $jobid $HTCPROCID $RANDOM$RANDOM" >>ran`
	if s.Several {
		source = "cat */ran */*/ran >ran 2>/dev/null; " + source
	}
	w := v1alpha1.StepWork{
		Name: s.Name,
		Job: v1alpha1.StepJob{
			Script:  place.script(source + "\n" + s.Does + "\n"),
			Outputs: []v1alpha1.StepOutput{{Path: "ran"}},
		},
		RetryExitCodes: s.Codes,
	}
	if s.Pulls != "" {
		w.Pull = []v1alpha1.Pull{{From: s.Pulls, Path: "ran"}}
	}
	if s.Retries > 0 {
		w.Retries = new(int32(s.Retries))
	}
	return w
}

// object returns the HTCWorkflow's spec.
func (f Flow) object(place Place, pool *v1alpha1.Pool) v1alpha1.HTCWorkflowSpec {
	spec := v1alpha1.HTCWorkflowSpec{
		Pool: pool, Graph: f.Graph, FailurePolicy: f.Policy, AlwaysSucceed: f.Always, Rules: f.Rules,
	}
	if f.Graph == nil {
		spec.Sequences = &v1alpha1.Sequences{Count: new(int32(f.Sequences))}
	}
	if f.Limit > 0 {
		spec.Sequences.MaxConcurrent = new(int32(f.Limit))
	}
	if f.Resumes {
		spec.Resume = v1alpha1.ResumeFromFailure
	}
	if f.Complete > 0 {
		spec.Sequences.Complete = new(int32(f.Complete))
	}
	for _, s := range f.Steps {
		work := s.work(place)
		if s.Name == finallyStep {
			spec.Finally = &work
			continue
		}
		step := v1alpha1.Step{StepWork: work}
		if s.All {
			step.Pairing = v1alpha1.PairAll
		}
		if s.Each > 0 {
			step.ForEach = &v1alpha1.ForEach{Count: int32(s.Each)}
		}
		if s.Table {
			step.ForEach = &v1alpha1.ForEach{ItemsFrom: &v1alpha1.ItemsFrom{Step: s.Pulls, Path: "table.csv"}}
		}
		if len(s.Files) > 0 {
			step.ForEach = &v1alpha1.ForEach{}
			for _, file := range s.Files {
				step.ForEach.Items = append(step.ForEach.Items, v1alpha1.Item{"FILE": v1alpha1.ItemValue(file)})
			}
		}
		if s.By != "" {
			step.Needs = []v1alpha1.Need{{Step: s.Pulls, By: []string{s.By}}}
		}
		if s.Forgiven != "" {
			step.MaxFailures = new(intstr.FromString(s.Forgiven))
		}
		if s.After != "" {
			step.Needs = []v1alpha1.Need{{Step: s.After, Any: true}}
		}
		spec.Steps = append(spec.Steps, step)
	}
	if f.Ends != nil {
		spec.Steps[0].AbortExitCodes, spec.Steps[0].AbortReturn = []int32{9}, f.Ends
	}
	if f.Most > 0 {
		spec.Sequences.Count, spec.Sequences.Completions = new(int32(f.Most)), new(int32(f.Succeeded))
	}
	if f.Numbered {
		spec.Sequences.Count = nil
		for n := range f.Sequences {
			item := v1alpha1.SequenceItem{"NUMBER": v1alpha1.ItemValue(fmt.Sprint(n))}
			spec.Sequences.Items = append(spec.Sequences.Items, item)
		}
	}
	if f.Shared > 0 {
		limit := v1alpha1.SharedLimit{
			Steps: []v1alpha1.StepName{f.Steps[0].Name, f.Steps[1].Name}, MaxJobs: v1alpha1.StepLimit(f.Shared),
		}
		spec.Throttle = &v1alpha1.Throttle{Together: []v1alpha1.SharedLimit{limit}}
	}
	if f.Idle > 0 {
		spec.Throttle = &v1alpha1.Throttle{MaxIdle: new(int32(f.Idle))}
	}
	return spec
}

// aborts reports whether a job that fails has all others removed.
func (f Flow) aborts() bool { return f.Policy == v1alpha1.FailureAbort || f.Ends != nil }

// nodes returns the names of a step's nodes, with the sequence and number of each.
func (f Flow) nodes(s FlowStep) (all []FlowNode) {
	if f.Graph != nil && s.Name != finallyStep {
		for _, n := range f.Graph.Nodes {
			if n.Step == s.Name {
				all = append(all, FlowNode{Step: s, Item: len(all), Name: string(n.Name)})
			}
		}
		return all
	}
	first, last := 0, f.Sequences-1
	if s.All || s.Name == finallyStep {
		first, last = -1, -1
	}
	for sequence := first; sequence <= last; sequence++ {
		for item := range max(s.Each, 1) {
			all = append(all, FlowNode{Step: s, Sequence: sequence, Item: item})
		}
	}
	return all
}

// FlowNode is one job of a step.
type FlowNode struct {
	Step           FlowStep
	Sequence, Item int
	Name           string // in Flow.Graph
}

func (n FlowNode) jobID() string {
	switch {
	case n.Name != "":
		return n.Name
	case n.Sequence < 0:
		return "all"
	}
	return fmt.Sprintf("job_%d", n.Sequence)
}

func (n FlowNode) name() string {
	name := string(n.Step.Name) + "/" + n.jobID()
	if n.Step.Each > 0 {
		name += fmt.Sprintf("/%d", n.Item)
	}
	return name
}

// nameOf returns the name of the node that has written a line of the file "ran".
func (f Flow) nameOf(line string) string {
	words := strings.Fields(line)
	for _, s := range f.Steps {
		for _, n := range f.nodes(s) {
			if len(words) == 4 && words[0] == string(s.Name) && words[1] == n.jobID() &&
				words[2] == fmt.Sprint(n.Item) {
				return n.name()
			}
		}
	}
	return ""
}

var (
	single = Flow{
		Sequences: 1,
		Phase:     v1alpha1.PhaseSucceeded,
		Succeeded: 1,
		Steps:     []FlowStep{{Name: "only", Lines: 1}},
	}
	chain = Flow{Sequences: 3, Phase: v1alpha1.PhaseSucceeded, Succeeded: 3, Steps: []FlowStep{
		{Name: "a", Lines: 1, Does: "sleep 1"}, {Name: "b", Pulls: "a", Lines: 2}, {Name: "c", Pulls: "b", Lines: 3},
	}}
	partly = Flow{Sequences: 3, Phase: v1alpha1.PhaseFailed, Succeeded: 2, Steps: []FlowStep{
		{Name: "first", Lines: 1}, {Name: "second", Pulls: "first", Lines: 2, Does: "test $jobid != job_1 || exit 3"},
		{Name: "third", Pulls: "second", Lines: 3}, {Name: finallyStep, Lines: 1},
	}, Differs: map[string]End{"second/job_1": {Code: 3}, "third/job_1": {Futile: true}}}
)

// resumed fails in one sequence if does says so.
func resumed(does string) Flow {
	f := Flow{Sequences: 3, Resumes: true, Phase: v1alpha1.PhaseSucceeded, Succeeded: 3, Steps: []FlowStep{
		{
			Name:  "first",
			Lines: 1,
		}, {Name: "second", Pulls: "first", Lines: 2, Does: "test $jobid != job_1 || exit 0"}, {Name: "third", Pulls: "second", Lines: 3},
	}}
	if does != "" {
		f.Steps[1].Does = "test $jobid != job_1 || " + does
		f.Phase, f.Succeeded, f.Differs = v1alpha1.PhaseFailed, 2, map[string]End{
			"second/job_1": {Code: 3},
			"third/job_1":  {Futile: true},
		}
	}
	return f
}

// ended has one job end everything: the workflow ends with that exitCode.
func ended(with int32, phase v1alpha1.Phase) Flow {
	return Flow{
		Sequences: 3, Phase: phase, Ends: &with,
		Steps: []FlowStep{
			{Name: "long", Lines: 1, Does: "test $jobid = job_1 && exit 9; sleep 600"},
			{Name: "next", Lines: 1},
			{Name: finallyStep, Lines: 1},
		},
		Differs: map[string]End{
			"long/job_0": {Stopped: true}, "long/job_1": {Code: 9}, "long/job_2": {Stopped: true},
			"next/job_0": {Stopped: true}, "next/job_1": {Stopped: true}, "next/job_2": {Stopped: true},
		},
	}
}

// factoryAbove is how many nodes of a step that is alone in its level DAGMan sends at most.
const factoryAbove = 5

// made has a factory make the nodes of the first step, two that wait at a time; some fail if does says so.
func made(does string, differs map[string]End) Flow {
	f := Flow{
		Sequences: 8, Idle: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 8 - len(differs), Differs: differs,
		Steps: []FlowStep{{Name: "many", Lines: 1, Does: does}, {Name: finallyStep, Lines: 1}},
	}
	if len(differs) > 0 {
		f.Phase = v1alpha1.PhaseFailed
	}
	return f
}

// replaced begins a third sequence in the place of the first.
func replaced() Flow {
	return Flow{
		Sequences: 3, Resumes: true, Most: 4, Repeats: 1, Phase: v1alpha1.PhaseSucceeded, Succeeded: 2,
		Steps: []FlowStep{
			{Name: "a", Lines: 1, Does: "test $jobid != job_0 || exit 3"},
			{Name: "b", Pulls: "a", Lines: 2},
			{Name: "merge", All: true, Pulls: "b", Several: true, Lines: 5},
		},
		Differs: map[string]End{"a/job_0": {Code: 3}, "b/job_0": {Futile: true}},
	}
}

// whole is what replaced is when nothing fails.
func whole() Flow {
	f := replaced()
	f.Sequences, f.Repeats, f.Differs, f.Steps[0].Does = 2, 0, nil, ""
	return f
}

// WorkflowShapes are what the HTCWorkflows are drawn from.
var WorkflowShapes = []WorkflowShape{
	{Name: "one step", Flow: single},
	{Name: "chain", Flow: chain},
	{Name: "forEach", Flow: Flow{Sequences: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 2, Steps: []FlowStep{
		{Name: "make", Lines: 1}, {Name: "simulate", Pulls: "make", Each: 4, Lines: 2, Does: "sleep $HTCPROCID"},
		{Name: "merge", Pulls: "simulate", Several: true, Lines: 9},
	}}},
	{Name: "all and finally", Flow: Flow{Sequences: 4, Phase: v1alpha1.PhaseSucceeded, Succeeded: 4, Steps: []FlowStep{
		{Name: "make", Lines: 1}, {Name: "merge", All: true, Pulls: "make", Several: true, Lines: 5},
		{Name: "each", Pulls: "merge", Lines: 6}, {Name: finallyStep, Pulls: "merge", Lines: 6},
	}}},
	{Name: "thirty nodes", Flow: Flow{Sequences: 5, Phase: v1alpha1.PhaseSucceeded, Succeeded: 5, Steps: []FlowStep{
		{
			Name:  "a",
			Each:  2,
			Lines: 1,
		}, {Name: "b", Pulls: "a", Several: true, Lines: 3}, {Name: "c", Pulls: "b", Each: 3, Lines: 4},
	}}},
	{
		Name: "a job makes the table",
		Flow: Flow{Sequences: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 2, Steps: []FlowStep{
			{Name: "split", All: true, Lines: 1, Does: "printf 'N\\n1\\n2\\n3\\n' >table.csv"},
			{Name: "part", Pulls: "split", Table: true, Each: 3, Lines: 2},
			{Name: "merge", Pulls: "part", Several: true, Lines: 7},
		}},
	},
	{Name: "whatever happened", Flow: Flow{Sequences: 2, Phase: v1alpha1.PhaseFailed, Succeeded: 1, Steps: []FlowStep{
		{Name: "make", Lines: 1, Does: "test $jobid != job_1 || exit 3"}, {Name: "tidy", After: "make", Lines: 1},
	}, Differs: map[string]End{"make/job_1": {Code: 3}}}},
	{Name: "a graph of nodes", Flow: Flow{
		Sequences: 1, Phase: v1alpha1.PhaseFailed,
		Steps: []FlowStep{
			{Name: "fit", Lines: 1, Does: "test $jobid != south || exit 3"},
			{
				Name:    "join",
				Pulls:   "fit",
				Several: true,
				Lines:   3,
			},
			{Name: "again", Pulls: "join", Several: true, Lines: 4},
			{Name: finallyStep, Lines: 1},
		},
		Graph: &v1alpha1.Graph{
			Nodes: []v1alpha1.GraphNode{
				{Name: "last", Step: "again"},
				{Name: "west", Step: "fit"}, {Name: "east", Step: "fit"}, {Name: "south", Step: "fit"},
				{Name: "one", Step: "join"}, {Name: "other", Step: "join"}, {Name: "never", Step: "join"},
			},
			Edges: []v1alpha1.GraphEdge{
				{Parents: []v1alpha1.NodeName{"west", "east"}, Children: []v1alpha1.NodeName{"one", "other"}},
				{Parents: []v1alpha1.NodeName{"one"}, Children: []v1alpha1.NodeName{"last"}},
				{Parents: []v1alpha1.NodeName{"south", "west"}, Children: []v1alpha1.NodeName{"never"}},
			},
		},
		Differs: map[string]End{"fit/south": {Code: 3}, "join/never": {Futile: true}},
	}},
	{Name: "partly failing", Flow: partly},
	{Name: "retried by code", Flow: Flow{Sequences: 3, Phase: v1alpha1.PhaseFailed, Succeeded: 1, Steps: []FlowStep{
		{
			Name:    "try",
			Lines:   1,
			Retries: 2,
			Codes:   []int32{75},
			Does:    "case $jobid in job_0) exit 75 ;; job_1) exit 3 ;; esac",
		}, {Name: "next", Pulls: "try", Lines: 2},
	}, Differs: map[string]End{
		"try/job_0": {Code: 75}, "next/job_0": {Futile: true}, "try/job_1": {Code: 3}, "next/job_1": {Futile: true},
	}}},
	{
		Name: "always succeeds",
		Flow: Flow{
			Sequences: 2,
			Phase:     v1alpha1.PhaseSucceeded,
			Succeeded: 2,
			Always:    []v1alpha1.StepName{"fit"},
			Steps: []FlowStep{
				{Name: "fit", Lines: 1, Does: "exit 4"}, {Name: "next", Lines: 1},
			},
		},
	},
	{
		Name: "enough",
		Flow: Flow{Sequences: 4, Complete: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 2, Steps: []FlowStep{
			{
				Name:  "long",
				Lines: 1,
				Does:  "case $jobid in job_2 | job_3) sleep 600 ;; esac",
			}, {Name: "next", Pulls: "long", Lines: 2},
		}, Differs: map[string]End{
			"long/job_2": {
				Stopped: true,
			}, "next/job_2": {Stopped: true}, "long/job_3": {Stopped: true}, "next/job_3": {Stopped: true},
		}},
	},
	{
		Name: "aborted",
		Flow: Flow{Sequences: 3, Policy: v1alpha1.FailureAbort, Phase: v1alpha1.PhaseFailed, Steps: []FlowStep{
			{
				Name:  "long",
				Lines: 1,
				Does:  "test $jobid = job_1 && exit 3; sleep 600",
			}, {Name: "next", Lines: 1}, {Name: finallyStep, Lines: 1},
		}, Differs: map[string]End{
			"long/job_0": {Stopped: true}, "long/job_1": {Code: 3}, "long/job_2": {Stopped: true},
			"next/job_0": {Stopped: true}, "next/job_1": {Stopped: true}, "next/job_2": {Stopped: true},
		}},
	},
	{
		Name:   "suspended and resumed",
		Paused: true,
		Flow: Flow{Sequences: 3, Phase: v1alpha1.PhaseSucceeded, Succeeded: 3, Steps: []FlowStep{
			{Name: "slow", Lines: 1, Does: "sleep 5"}, {Name: "next", Pulls: "slow", Lines: 2},
		}},
	},
	{
		Name:    "deleted",
		Deleted: true,
		Flow: Flow{
			Sequences: 3,
			Steps:     []FlowStep{{Name: "quick", Lines: 1}, {Name: "long", Lines: 1, Does: "sleep 600"}},
		},
	},
	{Name: "from a namespace with an account", Place: Place{Own: true}, Flow: partly, Edited: &chain},
	{Name: "to one of two schedds", Place: Place{Either: true}, Flow: partly, Edited: &single},
	{
		Name:    "deleted, from a namespace with an account",
		Place:   Place{Own: true},
		Deleted: true,
		Flow: Flow{
			Sequences: 1,
			Steps:     []FlowStep{{Name: "quick", Lines: 1}, {Name: "long", Lines: 1, Does: "sleep 600"}},
		},
	},
	{
		Name:    "deleted, at one of two schedds",
		Place:   Place{Either: true},
		Deleted: true,
		Flow: Flow{
			Sequences: 1,
			Steps:     []FlowStep{{Name: "quick", Lines: 1}, {Name: "long", Lines: 1, Does: "sleep 600"}},
		},
	},
	{Name: "edited", Flow: partly, Edited: &chain},
	{Name: "edited to fewer steps", Flow: chain, Edited: &single},
	{Name: "resumed from failure", Flow: resumed("exit 3"), Edited: new(resumed(""))},
	{Name: "grown", Flow: Flow{Sequences: 5, Limit: 1, Phase: v1alpha1.PhaseSucceeded, Succeeded: 5, Steps: []FlowStep{
		{Name: "a", Lines: 1, Does: "sleep 1"}, {Name: "b", Pulls: "a", Lines: 2},
	}, Rules: []v1alpha1.Rule{{Metric: "success", When: "value >= 1", Action: v1alpha1.ActionGrow, By: new(int32(2)), Max: new(int32(4))}}}},
	{
		Name: "repeated",
		Flow: Flow{Sequences: 3, Repeats: 1, Phase: v1alpha1.PhaseSucceeded, Succeeded: 3, Steps: []FlowStep{
			{
				Name:  "a",
				Lines: 1,
			}, {Name: "b", Pulls: "a", Lines: 2, Does: "echo chi2=${jobid#job_} >>$HTC_RESULTS"}, {Name: "c", Pulls: "b", Lines: 3},
			{Name: "d", All: true, Pulls: "c", Several: true, Lines: 10},
		}, Rules: []v1alpha1.Rule{{Step: "b", Metric: "chi2", When: "value > 0", Action: v1alpha1.ActionRepeat, Times: new(int32(1))}}},
	},
	{Name: "replaced until enough", Flow: replaced()},
	{Name: "replaced, then resumed", Flow: replaced(), Edited: new(whole())},
	{Name: "ended with 0", Flow: ended(0, v1alpha1.PhaseSucceeded)},
	{Name: "ended with 7", Flow: ended(7, v1alpha1.PhaseFailed)},
	{Name: "failures forgiven", Flow: Flow{
		Sequences: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 2,
		Steps: []FlowStep{
			{Name: "make", Lines: 1},
			{
				Name:     "part",
				Pulls:    "make",
				Each:     4,
				Lines:    2,
				Does:     "test $HTCPROCID != 1 || { rm ran; exit 3; }",
				Forgiven: "25%",
			},
			{Name: "merge", Pulls: "part", Several: true, Lines: 7},
		},
		Differs: map[string]End{"part/job_0/1": {Code: 3}, "part/job_1/1": {Code: 3}},
	}},
	{Name: "paired by a variable", Flow: Flow{
		Sequences: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 2,
		Steps: []FlowStep{
			{Name: "part", Each: 4, Files: []string{"a", "b", "a", "b"}, Lines: 1},
			{Name: "merge", Pulls: "part", Several: true, Each: 2, Files: []string{"a", "b"}, By: "FILE", Lines: 3},
		},
	}},
	{Name: "paired by number", Flow: Flow{
		Sequences: 2, Phase: v1alpha1.PhaseFailed,
		Steps: []FlowStep{
			{Name: "first", Each: 3, Lines: 1, Does: "test $HTCPROCID != 1 || exit 3"},
			{Name: "second", Pulls: "first", Each: 3, By: "HTCPROCID", Lines: 2},
		},
		Differs: map[string]End{
			"first/job_0/1": {Code: 3}, "second/job_0/1": {Futile: true},
			"first/job_1/1": {Code: 3}, "second/job_1/1": {Futile: true},
		},
	}},
	{Name: "a graph that goes on after failures", Flow: Flow{
		Sequences: 1, Phase: v1alpha1.PhaseFailed,
		Steps: []FlowStep{
			{Name: "fit", Lines: 1, Does: "test $REGION = w || exit 3"},
			{Name: "tidy", Lines: 1},
			{Name: "join", Pulls: "tidy", Several: true, Lines: 2},
		},
		Graph: &v1alpha1.Graph{
			Nodes: []v1alpha1.GraphNode{
				{Name: "west", Step: "fit", Variables: v1alpha1.Item{"REGION": "w"}},
				{Name: "east", Step: "fit", Variables: v1alpha1.Item{"REGION": "e"}},
				{Name: "after", Step: "tidy"},
				{Name: "last", Step: "join", Priority: new(int32(5))},
				{Name: "never", Step: "join"},
			},
			Edges: []v1alpha1.GraphEdge{
				{
					Parents: []v1alpha1.NodeName{"west", "east"}, Children: []v1alpha1.NodeName{"after"},
					Outcome: v1alpha1.OutcomeAny,
				},
				{Parents: []v1alpha1.NodeName{"after"}, Children: []v1alpha1.NodeName{"last", "never"}},
				{Parents: []v1alpha1.NodeName{"east"}, Children: []v1alpha1.NodeName{"never"}},
			},
		},
		Differs: map[string]End{"fit/east": {Code: 3}, "join/never": {Futile: true}},
	}},
	{Name: "made by a factory", Flow: Flow{
		Sequences: 2, Idle: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 2,
		Steps: []FlowStep{
			{Name: "split", All: true, Lines: 1, Does: "printf 'N\\n1\\n2\\n3\\n' >table.csv"},
			{Name: "part", Pulls: "split", Table: true, Each: 3, Lines: 2, Does: "sleep 1"},
			{Name: "merge", All: true, Pulls: "part", Several: true, Lines: 13},
		},
	}},
	{Name: "made by a factory, two of them fail", Edited: new(made("", nil)), Flow: made(
		"case $jobid in job_2 | job_5) exit 3 ;; esac",
		map[string]End{"many/job_2": {Code: 3}, "many/job_5": {Code: 3}},
	)},
	{Name: "made by a factory, at one of two schedds", Place: Place{Either: true}, Flow: made("sleep 2", nil)},
	{Name: "made by a factory, suspended and resumed", Paused: true, Flow: made("sleep 5", nil)},
	{Name: "made by a factory, deleted", Deleted: true, Flow: made("test $jobid = job_0 || sleep 600", nil)},
	{Name: "items and a shared limit", Flow: Flow{
		Sequences: 3, Numbered: true, Shared: 2, Phase: v1alpha1.PhaseSucceeded, Succeeded: 3,
		Steps: []FlowStep{
			{Name: "a", Each: 2, Lines: 1, Does: `test "$NUMBER" = "${jobid#job_}"`},
			{Name: "b", Pulls: "a", Several: true, Lines: 3},
		},
	}},
}
