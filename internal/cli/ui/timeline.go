package ui

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// timeline is what happened in an attempt, and when.
type timeline struct {
	Attempt int
	Current bool // the page shows it
	Place   string
	Counts  counts
	Moments []event
	Spans   []span
	Note    string
}

type event struct {
	Name string
	At   time.Time
}

// span is a part of the line, which is 100 wide.
type span struct {
	Name     string
	State    aggregate.NodeState // that it is drawn as
	X, Width float64
	Lasted   string
}

// timelineOf draws an attempt until now, or its end.
func timelineOf(a aggregate.Attempt, now time.Time) timeline {
	t := timeline{
		Attempt: a.Attempt, Note: note(a.Reason, a.Message),
		Counts: counts{Idle: a.Idle, Running: a.Running, Held: a.Held, Done: a.Done, Failed: a.Failed},
	}
	if a.Cluster > 0 {
		t.Place = fmt.Sprintf("cluster %d at %s", a.Cluster, a.Schedd)
	}
	over := a.Finished
	if over.IsZero() {
		over = a.Ended
	}
	for _, m := range []event{{"created", a.Created}, {"submitted", a.Submitted}, {"first job started", a.Started}, {"last job ended", over}} {
		if !m.At.IsZero() {
			t.Moments = append(t.Moments, m)
		}
	}
	end := over
	if end.IsZero() {
		end = now
	}
	t.Spans = spans(a.Created, end, []mark{
		{
			"being sent",
			aggregate.NodeWaiting,
			a.Created,
		}, {"waiting for a slot", aggregate.NodeIdle, a.Submitted}, {"running", aggregate.NodeRunning, a.Started},
	})
	return t
}

// mark is when a span began; the zero time: it did not.
type mark struct {
	name  string
	state aggregate.NodeState
	at    time.Time
}

// spans cuts the time from begin to end at marks. Clocks of two hosts may differ: a span is never of less than no time.
func spans(begin, end time.Time, marks []mark) (all []span) {
	whole := end.Sub(begin)
	if whole <= 0 {
		return nil
	}
	at := begin
	for i, m := range marks {
		if m.at.IsZero() {
			continue
		}
		from := latest(at, m.at)
		until := end
		for _, next := range marks[i+1:] {
			if !next.at.IsZero() {
				until = next.at
				break
			}
		}
		if until = earliest(latest(until, from), end); until.After(from) {
			all = append(
				all,
				span{
					m.name,
					m.state,
					100 * float64(from.Sub(begin)) / float64(whole),
					100 * float64(until.Sub(from)) / float64(whole),
					duration.HumanDuration(until.Sub(from)),
				},
			)
		}
		at = until
	}
	return all
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Words say what the line shows.
func (t timeline) Words() string {
	text := ""
	for _, s := range t.Spans {
		if text != "" {
			text += ", "
		}
		text += s.Name + " for " + s.Lasted
	}
	return text
}

// attemptOf is what the status tells of the newest attempt, without htcd's ledger.
func attemptOf(job *v1alpha1.HTCJob) aggregate.Attempt {
	s := job.Status
	a := aggregate.Attempt{
		Attempt: int(
			s.Attempt,
		), Schedd: s.Schedd, Cluster: int(s.ClusterID), Created: job.CreationTimestamp.Time, Jobs: job.Jobs(),
		Idle: int(s.Idle), Running: int(s.Running), Held: int(s.Held), Done: int(s.Succeeded), Failed: int(s.Failed),
	}
	m := lifecycle.MomentsOf(a.Created, s)
	a.Submitted, a.Started, a.Finished, a.Ended = m.Sent, m.Started, m.Finished, m.Known
	if a.Attempt > 1 { // when htcd began to send it is not in the status
		a.Created = m.Sent
	}
	return a
}

// timelines are those of all attempts, the newest first.
func timelines(job *v1alpha1.HTCJob, attempts []aggregate.Attempt, shown int, now time.Time) (all []timeline) {
	if len(attempts) == 0 {
		attempts = []aggregate.Attempt{attemptOf(job)}
	}
	for i := len(attempts) - 1; i >= 0; i-- {
		a := attempts[i]
		if a.Attempt <= 1 { // what it waited for before htcd began to send it; the rows of the first may be gone
			a.Created = job.CreationTimestamp.Time
		}
		t := timelineOf(a, now)
		t.Current = a.Attempt == shown
		if held := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionHeld); a.Attempt == int(
			job.Status.Attempt,
		) &&
			held != nil &&
			held.Status == "True" {
			t.Moments = append(t.Moments, event{"on hold", held.LastTransitionTime.Time})
		}
		all = append(all, t)
	}
	return all
}
