package lifecycle

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/notify/traces"
)

// Traced is what a trace needs to know of a status.
type Traced struct {
	Phase      v1alpha1.Phase
	Attempt    int32
	Conditions []metav1.Condition
}

// TracedOf returns what it needs of either kind's.
func TracedOf[S v1alpha1.HTCJobStatus | v1alpha1.HTCWorkflowStatus](status S) Traced {
	switch s := any(status).(type) {
	case v1alpha1.HTCJobStatus:
		return Traced{s.Phase, s.Attempt, s.Conditions}
	case v1alpha1.HTCWorkflowStatus:
		return Traced{s.Phase, s.Attempt, s.Conditions}
	}
	return Traced{}
}

// Ended reports whether an attempt has ended between two statuses, with its output and its artifacts.
func Ended(before, after Traced) bool {
	return after.settled() && (before.Attempt != after.Attempt || !before.settled())
}

func (t Traced) settled() bool { return t.Phase.Terminal() && !OwesOutput(t.Conditions) }

// Whole returns the span whose parts these are.
func Whole(name string, of metav1.Object, t Traced, begun time.Time, parts []traces.Span) traces.Span {
	whole := traces.Span{Name: name, Start: begun, End: begun, Attributes: map[string]string{
		"k8s.namespace.name": of.GetNamespace(), "htc.name": of.GetName(), "htc.uid": string(of.GetUID()),
		"htc.attempt": strconv.Itoa(int(t.Attempt)), "htc.phase": string(t.Phase),
	}}
	for _, part := range parts {
		if part.End.After(whole.End) {
			whole.End = part.End
		}
	}
	if c := meta.FindStatusCondition(
		t.Conditions,
		v1alpha1.ConditionFailed,
	); c != nil &&
		c.Status == metav1.ConditionTrue {
		whole.Error = c.Message
	}
	return whole
}

// TraceOf returns where the time of an attempt went that has ended.
func TraceOf(s Situation, status v1alpha1.HTCJobStatus, handed time.Time) *traces.Trace {
	run, t := s.Run, TracedOf(status)
	m := MomentsOfRun(*run, handed)
	if run.Attempt == 1 {
		m.Created, m.Begun = s.Job.CreationTimestamp.Time, run.Created
	}
	m = m.with(status.Conditions)
	parts := m.Spans("")
	whole := Whole(v1alpha1.Kind, s.Job, t, m.Created, parts)
	whole.Attributes["htc.schedd"], whole.Attributes["htc.pool"] = run.Schedd, run.Pool
	if run.Cluster > 0 {
		whole.Attributes["htc.cluster"] = strconv.Itoa(run.Cluster)
	}
	whole.Attributes["htc.jobs"] = strconv.Itoa(run.All())
	return &traces.Trace{UID: run.UID, Attempt: run.Attempt, Spans: append([]traces.Span{whole}, parts...)}
}
