package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// moment is when something happened to an object, in its present attempt.
type moment struct {
	at   time.Time
	what string
}

// momentsOf returns them in the order in which they happened. What went before an attempt that is not the first is in
// none of them.
func momentsOf(o *object) []moment {
	s := o.Status
	all := []moment{{o.CreationTimestamp.Time, "created"}}
	note := func(at time.Time, what string) {
		if !at.IsZero() {
			all = append(all, moment{at, what})
		}
	}
	sent := "sent"
	if s.ClusterID > 0 {
		sent = fmt.Sprintf("sent: cluster %d at %s", s.ClusterID, s.Schedd)
	}
	if s.Attempt > 1 {
		sent = fmt.Sprintf("attempt %d %s", s.Attempt, sent)
	}
	m := lifecycle.MomentsOf(o.CreationTimestamp.Time, s)
	note(m.Sent, sent)
	note(m.Started, "first job started")
	note(m.Finished, "last job ended")
	note(m.Known, "the end was known")
	note(m.Fetched, "the output was here")
	note(m.Pushed, "the artifacts were pushed")
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	return all
}

// showMoments prints what has happened, when, and how long after what stands above it; and what is waited for now.
func showMoments(w io.Writer, o *object, now time.Time) error {
	var b strings.Builder
	at := o.CreationTimestamp.Time
	since := func(t time.Time) string { return "+" + max(0, t.Sub(at)).Round(time.Second).String() }
	for _, m := range momentsOf(o) {
		fmt.Fprintf(&b, "%s %9s  %s\n", m.at.Local().Format(time.DateTime), since(m.at), m.what)
		at = m.at
	}
	if !over(o, o) {
		fmt.Fprintf(
			&b,
			"%s %9s  %s\n",
			now.Local().Format(time.DateTime),
			since(now),
			strings.TrimSpace("now: "+Plain(o.Status.Message)),
		)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
