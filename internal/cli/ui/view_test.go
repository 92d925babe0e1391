package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/a-h/templ"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func TestBarsShowWhatIsRare(t *testing.T) {
	c := counts{Done: 99_999, Failed: 1}
	require.Equal(t, "99999 done, 1 failed", c.String())
	bar := c.Bar()
	require.Len(t, bar, 2)
	require.Equal(t, aggregate.NodeFailed, bar[1].State)
	require.GreaterOrEqual(t, bar[1].Width, leastWidth)
	require.InDelta(t, 100, bar[1].X+bar[1].Width, 1e-9)
	require.Empty(t, counts{}.Bar())
}

func TestALogIsPassedOnByWholeCharacters(t *testing.T) {
	in := "a€😀\x1b[0m\xf0\x9f" + strings.Repeat("é", 40_000) + "\xe2"
	for name, from := range map[string]io.Reader{"byte by byte": iotest.OneByteReader(strings.NewReader(in)), "at once": strings.NewReader(in), "with the end": iotest.DataErrReader(strings.NewReader(in))} {
		var out bytes.Buffer
		require.NoError(
			t,
			showText(from, func(text string) error { _, err := out.WriteString(text); return err }),
			name,
		)
		require.True(t, "a€😀␛[0m��"+strings.Repeat("é", 40_000)+"�" == out.String(), name)
	}
	broken := errors.New("broken")
	require.ErrorIs(t, showText(iotest.ErrReader(broken), func(string) error { return nil }), broken)
}

const hostile = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "\x1b[31m"

// hostileJob has markup wherever somebody else's text can be.
func hostileJob() *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "ns",
			Name:        "a",
			UID:         "u",
			Annotations: map[string]string{v1alpha1.RerunAnnotation: hostile},
		},
	}
	job.Spec.Script = v1alpha1.Script{
		Program: v1alpha1.Program{
			Image: hostile, Command: hostile, Source: hostile,
			Before: &v1alpha1.ScriptPart{Source: hostile}, After: &v1alpha1.ScriptPart{Source: hostile},
		},
		Queue: new(int32(3)),
	}
	job.Status = v1alpha1.HTCJobStatus{
		Phase:     v1alpha1.PhaseFailed,
		Reason:    hostile,
		Message:   hostile,
		Failed:    1,
		Succeeded: 2,
		Attempt:   1,
		Schedd:    hostile,
		User:      hostile,
		Result: new(
			hostile,
		),
		Rerun:      hostile,
		Conditions: []metav1.Condition{{Type: hostile, Reason: hostile, Message: hostile, Status: "True"}},
	}
	return job
}

func hostileWorkflow() *v1alpha1.HTCWorkflow {
	w := &v1alpha1.HTCWorkflow{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "u"}}
	step := func(name v1alpha1.StepName) v1alpha1.Step {
		return v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: name}}
	}
	plot := step("plot")
	plot.Pairing = v1alpha1.PairAll
	w.Spec = v1alpha1.HTCWorkflowSpec{
		Sequences: &v1alpha1.Sequences{Count: new(int32(4))},
		Steps:     []v1alpha1.Step{step("simulate"), step("fit"), plot},
		Finally:   &v1alpha1.StepWork{Name: "report"},
	}
	w.Status = v1alpha1.HTCWorkflowStatus{
		Phase:   v1alpha1.PhaseRunning,
		Reason:  hostile,
		Attempt: 1,
		Schedd:  hostile,
		JobID:   []string{hostile},
		Nodes:   v1alpha1.NodeCounts{Total: 10, Done: 3, Failed: 1, Futile: 1},
		Sequences: v1alpha1.SequenceCounts{
			Total: 4,
		},
		Conditions: []metav1.Condition{{Type: hostile, Reason: hostile, Message: hostile, Status: "True"}},
		Steps:      []v1alpha1.StepStatus{{Name: "fit", NodeCounts: v1alpha1.NodeCounts{Total: 4, Done: 1, Failed: 1}}},
		Metrics: []v1alpha1.MetricStatus{
			{Step: "fit", Metric: hostile, Count: 3, Mean: 2, Variance: 4, Min: 0, Max: 10},
		},
	}
	return w
}

func hostilePool() *v1alpha1.HTCPool {
	p := &v1alpha1.HTCPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec = v1alpha1.HTCPoolSpec{
		State:  v1alpha1.PoolSuspended,
		Schedd: hostile,
		Images: []string{hostile},
		Limits: &v1alpha1.PoolLimits{MaxOpen: new(int32(50)), MaxOpenPerNamespace: new(int32(40))},
	}
	p.Status = v1alpha1.HTCPoolStatus{
		Open:       45,
		Running:    20,
		Held:       25,
		Namespaces: []v1alpha1.PoolNamespace{{Name: hostile, Open: 40, Waiting: 2}},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.PoolAccepting, Reason: hostile, Message: hostile, Status: "False"},
		},
	}
	return p
}

func TestMarkupIsShownAsText(t *testing.T) {
	job := hostileJob()
	r := ref{jobs, "ns", "a"}
	proc := aggregate.Proc{
		Proc:    1,
		State:   aggregate.NodeFailed,
		JobID:   hostile,
		Reason:  hostile,
		Message: hostile,
		Stderr:  hostile,
		Output:  true,
	}
	f := jobFacts{
		job:     job,
		attempt: 1,
		procs:   []aggregate.Proc{proc},
		failed:  []aggregate.Proc{proc},
		one:     &proc,
		sorry:   []string{hostile},
		attempts: []aggregate.Attempt{
			{Attempt: 1, Cluster: 1, Schedd: hostile, Reason: hostile, Message: hostile, Jobs: 3, Failed: 1},
		},
		files:  []aggregate.File{{Job: 1, Path: hostile}},
		events: []corev1.Event{{Reason: hostile, Message: hostile, Type: hostile}},
	}
	flow, pool := hostileWorkflow(), hostilePool()
	node := aggregate.Node{
		Step:     "fit",
		Sequence: new(1),
		State:    aggregate.NodeFailed,
		JobID:    hostile,
		Reason:   hostile,
		Message:  hostile,
		Stderr:   hostile,
	}
	nodes := workflowFacts{
		flow:    flow,
		attempt: 1,
		step:    "fit",
		cells:   map[place]aggregate.NodeState{},
		files:   map[string][]aggregate.File{"fit/job_1": {{Path: hostile}}},
		sorry:   []string{hostile},
		events:  f.events,
	}
	nodes.take(node)
	b := base("/base")
	for view, main := range map[string]templ.Component{
		"workflow": b.workflow(viewOfWorkflow(ref{workflows, "ns", "w"}, nodes)),
		"pool":     b.pool(viewOfPool(ref{pools, "", "p"}, pool, nil)),
		"job":      b.job(viewOfJob(r, f, time.Now())),
		"list":     b.list(listOf(jobs, changes{of: []version{{r, 1, job}}, trouble: []string{hostile}}, "boot")),
		"log":      b.log(logView{ref: ref{jobs, hostile, hostile}, Who: hostile, Back: "/" + hostile, Text: "/" + hostile}),
		"sorry":    sorry(hostile, hostile),
	} {
		text := fragment(t.Context(), page{base: b, Title: hostile, Server: hostile, main: main}.whole())
		require.Contains(t, text, "&lt;script&gt;alert(1)", view)
		require.NotContains(t, text, "<script>alert", view)
		require.NotContains(t, text, "<img", view)
		require.NotContains(t, text, `onerror=alert(2)>"`, view)
		require.NotRegexp(
			t,
			`<[a-z]+(\s+[a-z-]+(="[^"]*")?)*\s+(style|on[a-z]+)=`,
			text,
			view+": the policy forbids these",
		)
	}
}

func TestAGridHasALetterForEachJob(t *testing.T) {
	r := ref{jobs, "ns", "a"}
	procs := []aggregate.Proc{{Proc: 10_000, State: aggregate.NodeDone}, {Proc: 10_002, State: aggregate.NodeFailed}}
	g := gridOfProcs(r, 2, 10_000, 20_005, procs)
	require.Len(t, g.Cells, 10_000)
	require.Equal(t, "d.f.", g.Cells[:4], "what is not known is not shown as anything")
	require.Equal(t, "/htcjob/ns/a?attempt=2&from=0", g.Prev)
	require.Equal(t, "/htcjob/ns/a?attempt=2&from=20000", g.Next)
	require.Equal(t, 19_999, g.To())
	g = gridOfProcs(r, 1, 99_999, 3, nil)
	require.Empty(t, g.Cells)
	require.Empty(t, g.Next)
}

func TestATimeLineHasNoSpanOfLessThanNoTime(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1_000_000+s), 0) }
	line := timelineOf(
		aggregate.Attempt{
			Attempt:   1,
			Created:   at(0),
			Submitted: at(10),
			Started:   at(5),
			Finished:  at(110),
			Ended:     at(112),
		},
		at(500),
	)
	require.Equal(t, "being sent for 10s, running for 100s", line.Words(), "the clock of the execute node is behind")
	line = timelineOf(aggregate.Attempt{Attempt: 1, Created: at(0), Submitted: at(10), Started: at(20)}, at(50))
	require.Equal(t, "being sent for 10s, waiting for a slot for 10s, running for 30s", line.Words())
	require.InDelta(t, 100, line.Spans[2].X+line.Spans[2].Width, 1e-9)
	require.Equal(t, "", timelineOf(aggregate.Attempt{Created: at(9)}, at(1)).Words(), "this clock is behind")
	require.Equal(t, "being sent for 41s", timelineOf(aggregate.Attempt{Created: at(9)}, at(50)).Words())
}

func TestOnlyTheFirstAttemptBeginsWithTheHTCJob(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1_000_000+s), 0) }
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(0))}}
	lines := func(attempts ...aggregate.Attempt) (words []string) {
		for _, l := range timelines(job, attempts, 0, at(9_100)) {
			words = append(words, l.Words())
		}
		return words
	}
	require.Equal(t, []string{"being sent for 20s"}, lines(aggregate.Attempt{Attempt: 1, Created: at(10), Ended: at(20)}))
	const second = "being sent for 10s, waiting for a slot for 90s"
	older := aggregate.Attempt{Attempt: 4, Created: at(9_000), Submitted: at(9_010)}
	require.Equal(t, []string{second}, lines(older), "the rows of those before it are gone")
	job.Status = v1alpha1.HTCJobStatus{Attempt: 4, StartTime: new(metav1.NewTime(at(9_010)))}
	require.Equal(t, []string{"waiting for a slot for 90s"}, lines(), "the status alone is known")
	job.Status.StartTime = nil
	require.Equal(t, []string{""}, lines())
	job.Status.Attempt = 0
	require.Equal(t, []string{"being sent for 151m"}, lines())
}

func TestWhatHasGoneWrongIsToldAsBadNews(t *testing.T) {
	for _, kind := range []string{
		v1alpha1.ConditionFailed, v1alpha1.ConditionFailureTarget, v1alpha1.ConditionRepeatExhausted,
	} {
		all := tell([]metav1.Condition{
			{Type: v1alpha1.ConditionSuccessCriteria, Status: metav1.ConditionTrue},
			{Type: kind, Status: metav1.ConditionTrue},
		})
		require.Equal(t, kind, all[0].Type)
		require.True(t, all[0].Bad)
		require.False(t, all[1].Bad)
	}
}

func TestAnEventIsCountedAsOftenAsItCame(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(1_000_000, 0))
	all := happened([]corev1.Event{
		{EventTime: at},
		{Count: 3},
		{Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(at.Add(time.Hour))}},
	})
	require.Equal(t, []int32{7, 1, 3}, []int32{all[0].Count, all[1].Count, all[2].Count})
	require.Equal(t, at.Add(time.Hour), all[0].Last)
}

func TestWhatCanBeDoneIsWhatKubectlWouldDo(t *testing.T) {
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7"}}
	titles := func(suspended, ended bool, failed int) (all []string) {
		for _, d := range operationsOf(ref{jobs, "ns", "a"}, job, suspended, ended, failed) {
			all = append(all, d.Title)
		}
		return all
	}
	require.Equal(t, []string{"Suspend", "Delete"}, titles(false, false, 0))
	require.Equal(t, []string{"Resume", "Delete"}, titles(true, false, 0))
	require.Equal(t, []string{"Rerun", "Delete"}, titles(false, true, 0))
	require.Equal(t, []string{"Rerun failed", "Rerun", "Delete"}, titles(false, true, 2))
	require.Equal(
		t,
		`kubectl patch htcjob a -n ns --type=merge -p '{"spec":{"suspend":true}}'`,
		operationsOf(ref{jobs, "ns", "a"}, job, false, false, 0)[0].Line,
	)
	require.Equal(
		t,
		`kubectl annotate --overwrite htcjob a -n ns htc.cern.ch/rerun=$(date +%s) htc.cern.ch/rerun-procs=failed`,
		operationsOf(ref{jobs, "ns", "a"}, job, false, true, 1)[0].Line,
	)
	job.DeletionTimestamp = &metav1.Time{}
	require.Empty(t, titles(false, false, 0))

	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for action, want := range map[string]string{
		"suspend":      `{"spec":{"suspend":true}}`,
		"resume":       `{"spec":{"suspend":false}}`,
		"rerun":        `{"metadata":{"annotations":{"htc.cern.ch/rerun":"2026-01-02T03:04:05Z","htc.cern.ch/rerun-procs":null},"resourceVersion":"7"}}`,
		"rerun-failed": `{"metadata":{"annotations":{"htc.cern.ch/rerun":"2026-01-02T03:04:05Z","htc.cern.ch/rerun-procs":"failed"},"resourceVersion":"7"}}`,
	} {
		text, err := patch(action, "7", now)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text), action)
	}
	_, err := patch("other", "7", now)
	require.Error(t, err)
}

func TestBadNewsComesFirst(t *testing.T) {
	all := tell(
		[]metav1.Condition{
			{Type: "Submitted", Status: "True"},
			{Type: "Complete", Status: "False"},
			{Type: "Matchable", Status: "False"},
			{Type: "Held", Status: "True"},
			{Type: "BackendReachable", Status: "Unknown"},
		},
	)
	require.Equal(t, []string{"Matchable", "Held", "BackendReachable"}, []string{all[0].Type, all[1].Type, all[2].Type})
	require.Equal(t, "not known", all[2].Word)
	require.False(t, all[3].Bad || all[4].Bad)
	for _, kind := range []string{v1alpha1.ConditionRerunRefused, v1alpha1.ConditionCancelRefused,
		v1alpha1.PoolSlowed} {
		require.True(t, tell([]metav1.Condition{{Type: kind, Status: "True"}})[0].Bad, kind)
	}
}

func TestTheStepsAreDrawnAfterThoseThatTheyNeed(t *testing.T) {
	w := hostileWorkflow()
	g, err := graph.New(w.Spec)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3}, columns(g))
	d := draw(ref{workflows, "ns", "w"}, g, w.Status.Steps)
	require.Len(t, d.Boxes, 4)
	require.Len(t, d.Lines, 2)
	require.Equal(t, aggregate.NodeFailed, d.Boxes[1].Look.State)
	require.Equal(
		t,
		[]string{"1 per sequence", "1 per sequence", "once for all", "at the end"},
		[]string{d.Boxes[0].Of, d.Boxes[1].Of, d.Boxes[2].Of, d.Boxes[3].Of},
	)
	require.LessOrEqual(t, d.Boxes[3].X+boxWidth, d.Width)
	w.Spec.Steps[1].Needs = []v1alpha1.Need{}
	g, err = graph.New(w.Spec)
	require.NoError(t, err)
	require.Equal(t, []int{0, 0, 1, 2}, columns(g))
}

func TestTheNodesOfAGraphAreDrawnWithTheirEdges(t *testing.T) {
	name := v1alpha1.NodeName(strings.Repeat("n", 30) + "_001")
	spec := v1alpha1.HTCWorkflowSpec{
		Steps: []v1alpha1.Step{{StepWork: v1alpha1.StepWork{Name: "fit"}}},
		Graph: &v1alpha1.Graph{
			Nodes: []v1alpha1.GraphNode{{Name: "a", Step: "fit"}, {Name: name, Step: "fit"}, {Name: "c", Step: "fit"}},
			Edges: []v1alpha1.GraphEdge{
				{Parents: []v1alpha1.NodeName{"a"}, Children: []v1alpha1.NodeName{name}},
				{Parents: []v1alpha1.NodeName{"a"}, Children: []v1alpha1.NodeName{"c"}, Outcome: v1alpha1.OutcomeAny},
			},
		},
	}
	g, err := graph.New(spec)
	require.NoError(t, err)
	w := &v1alpha1.HTCWorkflow{Spec: spec}
	s := &Server{o: Options{Table: func(context.Context, string, v1alpha1.KeyRef) ([]byte, error) {
		return []byte("parents,children\n" + string(name) + ",c\n"), nil
	}}}
	tables, err := s.tables(t.Context(), w)
	require.NoError(t, err)
	nodes := listedNodes(tables, g)
	require.Len(t, nodes, 3)
	states := map[string]aggregate.NodeState{"a": aggregate.NodeFailed}
	d := drawNodes(ref{workflows, "ns", "w"}, g, nodes, states, "c")
	require.Equal(t, aggregate.NodeFailed, d.Spots[0].Look.State)
	require.Equal(t, aggregate.NodeWaiting, d.Spots[2].Look.State)
	require.Equal(t, "/htcworkflow/ns/w?step=fit&node=c#one", d.Spots[2].Link)
	require.Equal(t, "nnnnnnnnn…nnnn_001", d.Spots[1].Label)
	require.Less(t, d.Spots[0].X, d.Spots[2].X)
	require.Len(t, d.Lines, 2)
	for _, l := range d.Lines {
		require.Equal(t, l.To == "2", l.Near, "an edge of the node that is shown")
		require.Equal(t, l.To == "2", l.Weak)
	}
	require.Empty(t, gridOfSequences(ref{workflows, "ns", "w"}, g, workflowFacts{flow: w, attempt: 1}, 1).Cells)

	// With a table of edges, which is read once in an attempt.
	w.Spec.Graph.EdgesFrom = []v1alpha1.ItemsFrom{{ConfigMapKeyRef: v1alpha1.KeyRef{Name: "t", Key: "k"}}}
	w.Status.Attempt = 1
	for range 2 {
		g, err = graph.New(w.Spec)
		require.NoError(t, err)
		tables, err = s.tables(t.Context(), w)
		require.NoError(t, err)
		nodes = listedNodes(tables, g)
		require.Len(t, nodes, 3)
		require.Equal(t, []int{1}, nodes[2].Parents)
		s.o.Table = func(context.Context, string, v1alpha1.KeyRef) ([]byte, error) { return nil, errors.New("forbidden") }
	}
	w.Status.Attempt = 2
	_, err = s.tables(t.Context(), w)
	require.EqualError(t, err, "the nodes are not drawn: forbidden")
	w.Status.Nodes.Total = graph.MostDrawn + 2
	tables, err = s.tables(t.Context(), w)
	require.NoError(t, err)
	require.Empty(t, tables)
}

func TestSequencesAreRowsOfTheirSteps(t *testing.T) {
	f := workflowFacts{
		flow:    hostileWorkflow(),
		attempt: 2,
		step:    "fit",
		which:   new(1),
		cells:   map[place]aggregate.NodeState{},
	}
	for _, n := range []aggregate.Node{
		{Step: "simulate", Sequence: new(0), State: aggregate.NodeDone}, {Step: "simulate", Sequence: new(1), State: aggregate.NodeDone}, {Step: "simulate", Sequence: new(1), Index: 1, State: aggregate.NodeHeld},
		{Step: "fit", Sequence: new(0), State: aggregate.NodeRunning}, {Step: "fit", Sequence: new(1), State: aggregate.NodeFailed}, {Step: "plot", State: aggregate.NodeWaiting},
	} {
		f.take(n)
	}
	v := viewOfWorkflow(ref{workflows, "ns", "w"}, f)
	require.Equal(t, []string{"simulate", "fit"}, v.Grid.Columns)
	require.Equal(t, "drhfwwww", v.Grid.Cells, "of several nodes, that which most needs to be seen")
	require.Equal(t, 3, v.Grid.To())
	require.Len(t, v.Failures, 1)
	require.Equal(t, "fit/job_1", v.Failures[0].Who)
	require.Len(t, v.Nodes, 1)
	f.from = 3
	require.Equal(t, "ww", viewOfWorkflow(ref{workflows, "ns", "w"}, f).Grid.Cells)
	f.flow.Spec.Sequences.Count = new(int32(100_000))
	require.Len(t, viewOfWorkflow(ref{workflows, "ns", "w"}, f).Grid.Cells, mostCells)
}

func TestAPlotStaysInItsBounds(t *testing.T) {
	m := metricOf(v1alpha1.MetricStatus{Min: 0, Max: 10, Mean: 2, Variance: 9})
	require.Equal(t, []float64{20, 0, 50}, []float64{m.Mid, m.From, m.Width})
	for _, odd := range []v1alpha1.MetricStatus{{Min: 3, Max: 3, Mean: 3},
		{Min: math.Inf(-1), Max: math.Inf(1), Mean: math.NaN()}, {Min: -math.MaxFloat64, Max: math.MaxFloat64}} {
		require.Equal(t, 50.0, metricOf(odd).Mid)
	}
}

func TestAPoolShowsItsLimitsAndWhoWaits(t *testing.T) {
	p := hostilePool()
	job := func(name, pool string, phase v1alpha1.Phase) version {
		j := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		if pool != "" {
			j.Spec.Pool = &v1alpha1.Pool{Name: pool}
		}
		j.Status.Phase = phase
		return version{ref{jobs, "ns", name}, 1, j}
	}
	all := []version{
		job("a", "p", v1alpha1.PhasePending),
		job("b", "p", v1alpha1.PhaseRunning),
		job("c", "other", v1alpha1.PhasePending),
		job("d", "", ""),
		job("e", "p", ""),
	}
	v := viewOfPool(ref{pools, "", "p"}, p, all)
	require.Len(t, v.Waiting, 2)
	require.Contains(t, v.Note, "Suspended: nothing new is sent")
	require.InDelta(t, 90, v.Limits[0].Bar()[0].Width, 1e-9)
	require.Empty(t, v.Limits[1].Bar(), "there is no limit")
	require.Equal(t, aggregate.NodeHeld, v.Namespaces[0].Bar()[0].State, "it is full")
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: v1alpha1.PoolDefault, Status: "True"})
	require.Len(t, viewOfPool(ref{pools, "", "p"}, p, all).Waiting, 3)
}
