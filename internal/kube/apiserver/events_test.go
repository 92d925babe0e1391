package apiserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

// slowSink is an apiserver that answers only when it is allowed to.
type slowSink struct {
	events.EventSink
	came   chan struct{}
	answer chan struct{}
}

func (s slowSink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.came <- struct{}{}
	<-s.answer
	return event, nil
}

func TestABurstOfEventsIsWrittenAFewAtATime(t *testing.T) {
	s := slowSink{came: make(chan struct{}, 10), answer: make(chan struct{})}
	paced := NewPacedEvents(s)
	write := func(ctx context.Context, done chan<- error) {
		_, err := paced.Create(ctx, &eventsv1.Event{})
		done <- err
	}
	done := make(chan error, eventsAtOnce)
	for range eventsAtOnce {
		go write(t.Context(), done)
		<-s.came
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := paced.Create(ended, &eventsv1.Event{})
	require.ErrorIs(t, err, context.Canceled, "one more waits, for as long as htcd works")
	require.Empty(t, s.came)

	close(s.answer)
	for range eventsAtOnce {
		require.NoError(t, <-done)
	}
	go write(t.Context(), done)
	require.NoError(t, <-done)
}
