package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// maxNote is how long an Event's text may be, in bytes; the apiserver refuses 1,024 and more.
const maxNote = 1000

// RecordedEvents is Events over client-go's recorder.
type RecordedEvents struct{ Recorder events.EventRecorder }

func (e RecordedEvents) Normal(job *v1alpha1.HTCJob, reason, message string) {
	e.Recorder.Eventf(job, nil, corev1.EventTypeNormal, reason, "Run", "%s", shorten(message, maxNote))
}

func (e RecordedEvents) Warning(job *v1alpha1.HTCJob, reason, message string) {
	e.Recorder.Eventf(job, nil, corev1.EventTypeWarning, reason, "Run", "%s", shorten(message, maxNote))
}

// eventsAtOnce is how many Events are written at the same time. client-go's broadcaster would write all of a burst at once,
// and the statuses, which somebody waits for, would wait among them.
const eventsAtOnce = 2

// PacedEvents is an EventSink that lets a few writes at a time through to another.
type PacedEvents struct {
	sink events.EventSink
	room chan struct{}
}

// NewPacedEvents returns one before sink.
func NewPacedEvents(sink events.EventSink) *PacedEvents {
	return &PacedEvents{sink, make(chan struct{}, eventsAtOnce)}
}

func (p *PacedEvents) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return p.inTurn(ctx, func() (*eventsv1.Event, error) { return p.sink.Create(ctx, event) })
}

func (p *PacedEvents) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return p.inTurn(ctx, func() (*eventsv1.Event, error) { return p.sink.Update(ctx, event) })
}

func (p *PacedEvents) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return p.inTurn(ctx, func() (*eventsv1.Event, error) { return p.sink.Patch(ctx, event, data) })
}

func (p *PacedEvents) inTurn(ctx context.Context, write func() (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
		return write()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// shorten cuts s to at most limit bytes, at a character's edge, and shows that it did.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
