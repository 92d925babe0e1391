package apiserver

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"htc.cern.ch/htcd/api/v1alpha1"
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

// notedSink notes what Events say, and how often in a row.
type notedSink struct {
	events.EventSink
	notes chan string
}

func (s notedSink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.notes <- event.Note
	return event, nil
}

func (s notedSink) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s.notes <- fmt.Sprint(event.Series.Count, " times: ", event.Note)
	return event, nil
}

func TestWhatAUserDoesIsAnEventOfItsOwn(t *testing.T) {
	s := notedSink{notes: make(chan string, 10)}
	broadcaster := events.NewBroadcaster(s)
	defer broadcaster.Shutdown()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	told := Events[*v1alpha1.HTCJob]{broadcaster.NewRecorder(scheme, "htcd")}
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: "physics", Name: "zero", ResourceVersion: "1"}}
	for _, use := range []struct{ user, message, want string }{
		{"anna", "anna runs a command in job 7.0", "anna runs a command in job 7.0"},
		{"mallory", "mallory runs a command in job 7.0", "mallory runs a command in job 7.0"},
		{"anna", "anna runs a command in job 7.1", "anna runs a command in job 7.1"},
		{"anna", "anna runs a command in job 7.0", "2 times: anna runs a command in job 7.0"},
	} {
		told.Use(job, use.user, "Exec", use.message)
		require.Equal(t, use.want, <-s.notes)
	}
}
