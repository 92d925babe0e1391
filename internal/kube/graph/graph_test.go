package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

type (
	spec = v1alpha1.HTCWorkflowSpec
	name = v1alpha1.StepName
)

// step builds one that runs in each sequence and needs the one before it.
func step(n name, change ...func(*v1alpha1.Step)) v1alpha1.Step {
	s := v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: n}}
	for _, f := range change {
		f(&s)
	}
	return s
}

func needs(names ...name) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) {
		s.Needs = []v1alpha1.Need{}
		for _, n := range names {
			s.Needs = append(s.Needs, v1alpha1.Need{Step: n})
		}
	}
}

func all(s *v1alpha1.Step) { s.Pairing = v1alpha1.PairAll }

func each(n int32) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) { s.ForEach = &v1alpha1.ForEach{Count: n} }
}

func pulls(from name, path string) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) { s.Pull = append(s.Pull, v1alpha1.Pull{From: from, Path: path}) }
}

func steps(s ...v1alpha1.Step) spec { return spec{Steps: s} }

func finally(s spec, work v1alpha1.StepWork) spec {
	s.Finally = &work
	return s
}

func made(t *testing.T, s spec) *Graph {
	t.Helper()
	g, err := New(s)
	require.NoError(t, err)
	return g
}

func TestStepsAreCutIntoLevels(t *testing.T) {
	for what, c := range map[string]struct {
		spec   spec
		levels [][]int
	}{
		"one step":                                {steps(step("a")), [][]int{{0}}},
		"each needs the one before":               {steps(step("a"), step("b"), step("c")), [][]int{{0, 1, 2}}},
		"a diamond":                               {steps(step("a"), step("b", needs("a")), step("c", needs("a")), step("d", needs("b", "c"))), [][]int{{0, 1, 2, 3}}},
		"steps that need nothing":                 {steps(step("a"), step("b", needs()), step("c", needs("a", "b"))), [][]int{{0, 1, 2}}},
		"a step that is needed by an earlier one": {steps(step("a", needs("c")), step("b", needs()), step("c", needs("b"))), [][]int{{1, 2, 0}}},
		"one for all comes in the next level":     {steps(step("a"), step("b", all)), [][]int{{0}, {1}}},
		"those for all follow each other":         {steps(step("a"), step("b", all), step("c", all)), [][]int{{0}, {1, 2}}},
		"one for all that needs nothing":          {steps(step("a", all), step("b")), [][]int{{0, 1}}},
		"out, in and out again":                   {steps(step("a"), step("b", all), step("c"), step("d", all)), [][]int{{0}, {1, 2}, {3}}},
		"a branch stays in its level":             {steps(step("a"), step("b", all), step("c", needs("a"))), [][]int{{0, 2}, {1}}},
		"finally comes last":                      {finally(steps(step("a"), step("b", all)), v1alpha1.StepWork{Name: "f"}), [][]int{{0}, {1}, {2}}},
	} {
		t.Run(what, func(t *testing.T) { require.Equal(t, c.levels, made(t, c.spec).Levels) })
	}
}

// together has one step, and a limit for these.
func together(names ...name) spec {
	s := steps(step("a"))
	s.Throttle = &v1alpha1.Throttle{Together: []v1alpha1.SharedLimit{{Steps: names, MaxJobs: 5}}}
	return s
}

func TestAMistakeInTheStepsIsNamed(t *testing.T) {
	throttled := steps(step("a"))
	throttled.Throttle = &v1alpha1.Throttle{PerStep: map[string]v1alpha1.StepLimit{"b": 1}}
	bounded := func(t *v1alpha1.Throttle) spec {
		s := steps(step("a"))
		s.Steps[0].Job.Parallelism, s.Throttle = new(int32(3)), t
		return s
	}
	lenient := steps(step("a"), step("b"))
	lenient.AlwaysSucceed = []name{"a", "c"}
	for what, c := range map[string]struct {
		spec  spec
		words string
	}{
		"an unknown step":                 {steps(step("a"), step("b", needs("x"))), `spec.steps[1].needs: there is no step "x": the steps are a, b`},
		"a step that needs itself":        {steps(step("a", needs("a"))), `spec.steps[0].needs: the step "a" needs itself`},
		"two steps of one name":           {steps(step("a"), step("a")), `spec.steps[1]: there are two steps "a": give each a name of its own`},
		"a step that needs finally":       {finally(steps(step("a", needs("f"))), v1alpha1.StepWork{Name: "f"}), `spec.steps[0].needs: "f" is spec.finally, which runs when everything else has ended`},
		"finally with the name of a step": {finally(steps(step("a")), v1alpha1.StepWork{Name: "a"}), `spec.finally: there is a step "a" already: give it another name`},
		"a cycle":                         {steps(step("a"), step("b", needs("d", "a")), step("c"), step("d")), "spec.steps: no step of a cycle could ever run: b needs d, d needs c, c needs b"},
		"a step behind a cycle":           {steps(step("x", needs("b")), step("a", needs("b")), step("b")), "spec.steps: no step of a cycle could ever run: b needs a, a needs b"},
		"an unknown step in throttle":     {throttled, `spec.throttle.perStep: there is no step "b": the steps are a`},
		"an unknown step in together":     {together("a", "b"), `spec.throttle.together[0]: there is no step "b": the steps are a`},
		"two limits of a step":            {together("a", "a"), `spec.throttle.together[0]: the step "a" has a limit already, and DAGMan knows one for each: leave it out here or there`},
		"a limit beside parallelism": {bounded(&v1alpha1.Throttle{PerStep: map[string]v1alpha1.StepLimit{"a": 1}}),
			`spec.throttle.perStep: the step "a" has job.parallelism, which says the same: keep one of them`},
		"a shared limit beside parallelism": {bounded(&v1alpha1.Throttle{Together: []v1alpha1.SharedLimit{{Steps: []name{"a"}, MaxJobs: 1}}}),
			`spec.throttle.together[0]: the step "a" has a limit already, and DAGMan knows one for each: leave it out here or there`},
		"an unknown step in alwaysSucceed": {lenient, `spec.alwaysSucceed[1]: there is no step "c": the steps are a, b`},
		"a pull from an unknown step":      {steps(step("a", pulls("x", "f"))), `spec.steps[0].pull[0]: there is no step "x": the steps are a`},
		"a pull from a step after":         {steps(step("a", pulls("b", "f")), step("b")), `spec.steps[0].pull[0]: the step "b" does not come before "a": name it in needs`},
		"a pull from a step beside":        {steps(step("a"), step("b", needs(), pulls("a", "f"))), `spec.steps[1].pull[0]: the step "a" does not come before "b": name it in needs`},
		"a pull of finally from nowhere":   {finally(steps(step("a")), v1alpha1.StepWork{Name: "f", Pull: []v1alpha1.Pull{{From: "b", Path: "x"}}}), `spec.finally.pull[0]: there is no step "b": the steps are a, f`},
		"two pulls to the same place": {steps(step("a"), step("b"), step("c", pulls("a", "f"), pulls("b", "f"))),
			`spec.steps[2].pull[1]: what comes from "a" and from "b" would lie at the same place, f: let one of these steps give its file another name`},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := New(c.spec)
			require.EqualError(t, err, c.words)
		})
	}
}

func TestWhatTheSpecSaysOfAStepStandsAtIt(t *testing.T) {
	s := finally(steps(step("a"), step("b", each(4)), step("c", all)), v1alpha1.StepWork{Name: "f"})
	s.AlwaysSucceed = []name{"b", "f"}
	s.Throttle = &v1alpha1.Throttle{PerStep: map[string]v1alpha1.StepLimit{"b": 20}}
	g := made(t, s)
	require.Len(t, g.Steps, 4)
	require.Equal(t, 20, g.Steps[1].MaxJobs)
	require.Zero(t, g.Steps[0].MaxJobs)
	s.Throttle = nil
	s.Steps[1].Job.Parallelism = new(int32(20))
	require.Equal(t, g.Steps[1].MaxJobs, made(t, s).Steps[1].MaxJobs, "job.parallelism means the same")
	require.True(t, g.Steps[1].AlwaysSucceeds && g.Steps[3].AlwaysSucceeds)
	require.False(t, g.Steps[0].AlwaysSucceeds || g.Steps[2].AlwaysSucceeds)
	require.Equal(t, []int{0}, g.Steps[1].Needs)
	require.True(t, g.Steps[1].Indexed && !g.Steps[0].Indexed)
	require.True(t, g.Steps[2].All && g.Steps[3].All && g.Steps[3].Final)
	require.Empty(t, g.Steps[3].Needs)
}

func TestAPullLiesAtItsPathOrAtThePlaceOfEachNode(t *testing.T) {
	g := made(t, finally(steps(
		step("a"),
		step("b", each(2), pulls("a", "one")),
		step("c", pulls("b", "two"), pulls("a", "one")),
		step("d", all, pulls("c", "three")),
		step("e", pulls("d", "four"), pulls("a", "one")),
	), v1alpha1.StepWork{Name: "f", Pull: []v1alpha1.Pull{{From: "d", Path: "four"}, {From: "e", Path: "five"}}}))
	require.Equal(t, []Pull{{From: 0, Path: "one"}}, g.Steps[1].Pulls)
	require.Equal(t, []Pull{{From: 1, Path: "two", Several: true}, {From: 0, Path: "one"}}, g.Steps[2].Pulls)
	require.Equal(t, []Pull{{From: 2, Path: "three", Several: true, Earlier: true}}, g.Steps[3].Pulls)
	require.Equal(t, []Pull{{From: 3, Path: "four"}, {From: 0, Path: "one", Earlier: true}}, g.Steps[4].Pulls)
	require.Equal(
		t,
		[]Pull{{From: 3, Path: "four", Earlier: true}, {From: 4, Path: "five", Several: true, Earlier: true}},
		g.Steps[5].Pulls,
	)

	require.Equal(
		t,
		[]Node{{Step: 2, Sequence: 1}, {Step: 2, Sequence: 4}},
		g.Sources(Node{Step: 3, Sequence: AllSequences}, g.Steps[3].Pulls[0], []int{1, 4}),
	)
	require.Equal(
		t,
		[]Node{{Step: 0, Sequence: 4}},
		g.Sources(Node{Step: 4, Sequence: 4}, g.Steps[4].Pulls[1], []int{1, 4}),
	)
	require.Equal(
		t,
		[]Node{{Step: 3, Sequence: AllSequences}},
		g.Sources(Node{Step: 5, Sequence: AllSequences}, g.Steps[5].Pulls[0], []int{1, 4}),
	)
}
