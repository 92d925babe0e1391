package lifecycle

import (
	"path"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify/traces"
)

// Moments are when an attempt got how far; the zero time: it did not, or nobody knows when.
type Moments struct {
	Created  time.Time // the object, or the attempt
	Begun    time.Time // its turn came
	Handed   time.Time // condor_submit began
	Sent     time.Time
	Started  time.Time // the first of its jobs
	Finished time.Time // the last
	Known    time.Time // htcd knew of that
	Fetched  time.Time
	Pushed   time.Time
}

// MomentsOf returns those that a status tells of.
func MomentsOf(created time.Time, s v1alpha1.HTCJobStatus) Moments {
	m := Moments{
		Created: created,
		Sent:    timeOf(s.StartTime),
		Started: timeOf(s.StartedAt),
		Known:   timeOf(s.CompletionTime),
	}
	if lasted, err := time.ParseDuration(s.Duration); err == nil && s.StartedAt != nil && s.Phase.Terminal() {
		m.Finished = m.Started.Add(lasted)
	}
	return m.with(s.Conditions)
}

// OutputMoments returns those after an end that conditions tell of.
func OutputMoments(ended time.Time, conditions []metav1.Condition) Moments {
	return Moments{Created: ended}.with(conditions)
}

// MomentsOfRun returns those that the ledger knows, to the millisecond but for what HTCondor says.
func MomentsOfRun(run ledger.Run, handed time.Time) Moments {
	return Moments{
		Created: run.Created, Handed: handed, Sent: run.Submitted, Started: run.Started, Finished: run.Finished,
		Known: run.Ended,
	}
}

// with adds when the output, and artifacts, were where they belong.
func (m Moments) with(conditions []metav1.Condition) Moments {
	at := func(kind string) (t time.Time) {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			t = c.LastTransitionTime.Time
		}
		return t
	}
	m.Fetched, m.Pushed = at(v1alpha1.ConditionOutputFetched), at(v1alpha1.ConditionOutputsPushed)
	return m
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Spans returns what an attempt spent its time with, one after the other, as parts of the span with that path. What it
// was at when it ended takes the time until then.
func (m Moments) Spans(under string) (spans []traces.Span) {
	if !m.Known.IsZero() { // HTCondor's clock is another one
		m.Started, m.Finished = earlier(m.Started, m.Known), earlier(m.Finished, m.Known)
	}
	ended := &m.Known
	switch {
	case m.Sent.IsZero() && m.Handed.IsZero():
		ended = &m.Handed
	case m.Sent.IsZero():
		ended = &m.Sent
	case m.Started.IsZero():
		ended = &m.Started
	case m.Finished.IsZero():
		ended = &m.Finished
	}
	known := m.Known
	m.Known = time.Time{}
	*ended = known
	at := m.Created
	for _, step := range []struct {
		name string
		end  time.Time
	}{
		{"admission", m.Begun}, {"staging", m.Handed}, {"condor_submit", m.Sent}, {"queue", m.Started},
		{traces.Run, m.Finished}, {"notice", m.Known}, {"fetch", m.Fetched}, {"push", m.Pushed},
	} {
		if step.end.IsZero() {
			continue
		}
		begun := at
		if step.end.After(at) {
			at = step.end
		}
		spans = append(spans, traces.Span{Path: path.Join(under, step.name), Name: step.name, Start: begun, End: at})
	}
	return spans
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
