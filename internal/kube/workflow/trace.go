package workflow

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify/traces"
)

// traceOf returns where the time of an attempt went that has ended: a span for each of its DAGs, with parts as those of
// an HTCJob.
func traceOf(s Situation, t lifecycle.Traced, handed reconciler.Handed) *traces.Trace {
	first := s.DAGs[0].Run
	begun := first.Created
	var parts []traces.Span
	if s.Attempt == 1 {
		begun = s.Workflow.CreationTimestamp.Time
		parts = lifecycle.Moments{Created: begun, Begun: first.Created}.Spans("")
	}
	at := begun
	for _, d := range s.DAGs {
		within := lifecycle.MomentsOfRun(d.Run, handed[d.Run.Attempt]).Spans(dagSpan(d.Run))
		dag := traces.Span{Path: dagSpan(d.Run), Name: "DAG", Start: d.Run.Created, End: d.Run.Created}
		if len(within) > 0 {
			dag.End = within[len(within)-1].End
		}
		var names []string
		nodes := 0
		for _, step := range d.Steps {
			names = append(names, step.Name)
			nodes += step.Total()
		}
		dag.Attributes = map[string]string{
			"htc.steps":   lifecycle.Shorten(strings.Join(names, " "), lifecycle.MaxNote),
			"htc.nodes":   strconv.Itoa(nodes),
			"htc.cluster": strconv.Itoa(d.Run.Cluster),
			"htc.schedd":  d.Run.Schedd,
		}
		if n := d.failed(); n > 0 {
			dag.Error = lifecycle.Plural(n, "node") + " failed"
		}
		parts = append(append(parts, dag), within...)
		at = dag.End
	}
	parts = append(parts, lifecycle.OutputMoments(at, t.Conditions).Spans("")...)
	whole := lifecycle.Whole(v1alpha1.WorkflowKind, s.Workflow, t, begun, parts)
	whole.Attributes["htc.pool"] = first.Pool
	return &traces.Trace{UID: first.UID, Attempt: s.Attempt, Spans: append([]traces.Span{whole}, parts...)}
}

// dagSpan is the path of a DAG's span.
func dagSpan(run ledger.Run) string { return fmt.Sprint("dag ", run.Attempt) }

// traceparent returns the parent of what a DAG's nodes trace themselves.
func traceparent(run ledger.Run) string {
	as, _ := storedAs(run)
	return traces.Parent(run.UID, cmp.Or(as.Number, 1), path.Join(dagSpan(run), traces.Run))
}
