package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// Events records what happened to objects of one kind with client-go's recorder.
type Events[O runtime.Object] struct{ Recorder events.EventRecorder }

func (e Events[O]) Normal(object O, reason, message string) {
	e.Recorder.Eventf(
		object,
		nil,
		corev1.EventTypeNormal,
		reason,
		"Run",
		"%s",
		lifecycle.Shorten(message, lifecycle.MaxNote),
	)
}

func (e Events[O]) Warning(object O, reason, message string) {
	e.Recorder.Eventf(
		object,
		nil,
		corev1.EventTypeWarning,
		reason,
		"Run",
		"%s",
		lifecycle.Shorten(message, lifecycle.MaxNote),
	)
}

// Use records what a user does to an object. Of the same objects and reason the recorder counts Events as one within
// minutes, with the text of the first: so what is said is part of the second object.
func (e Events[O]) Use(object O, user, reason, message string) {
	message = lifecycle.Shorten(message, lifecycle.MaxNote)
	by := &corev1.ObjectReference{
		APIVersion: rbacv1.SchemeGroupVersion.String(),
		Kind:       rbacv1.UserKind,
		Name:       user,
		FieldPath:  message,
	}
	e.Recorder.Eventf(object, by, corev1.EventTypeNormal, reason, "Run", "%s", message)
}

// eventsAtOnce is how many Events are written at the same time. client-go's broadcaster would write all of a burst at
// once and delay the statuses, which users wait for.
const eventsAtOnce = 2

// PacedEvents is an EventSink that passes a few writes at a time to another.
type PacedEvents struct {
	sink events.EventSink
	room chan struct{}
}

// NewPacedEvents returns a PacedEvents in front of sink.
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
