package fairqueue

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
)

// letterPool is a Pool whose keys begin with the letter of their backend. Work at the backend x does not end before
// letGo is closed.
type letterPool struct {
	Pool[string]
	letGo, ended chan struct{}

	mu            sync.Mutex
	served        []string
	inside, worst map[byte]int
	reached       chan string
}

func newLetterPool(t *testing.T, most int) *letterPool {
	t.Helper()
	b := &letterPool{
		letGo:   make(chan struct{}),
		ended:   make(chan struct{}),
		inside:  map[byte]int{},
		worst:   map[byte]int{},
		reached: make(chan string, 100),
	}
	b.Queue, b.Size = New(workqueue.DefaultTypedControllerRateLimiter[string]()), most
	b.Backend = func(_ context.Context, key string) string { return key[:1] }
	b.Serve = Each(func(_ context.Context, key string) {
		b.mu.Lock()
		b.inside[key[0]]++
		b.worst[key[0]] = max(b.worst[key[0]], b.inside[key[0]])
		b.served = append(b.served, key)
		b.mu.Unlock()
		b.reached <- key
		if key[0] == 'x' {
			<-b.letGo
		}
		b.mu.Lock()
		b.inside[key[0]]--
		b.mu.Unlock()
	})
	go func() { b.Run(context.WithoutCancel(t.Context())); close(b.ended) }()
	return b
}

func (b *letterPool) until(t *testing.T, keys ...string) {
	t.Helper()
	var got []string
	for range keys {
		got = append(got, <-b.reached)
	}
	require.ElementsMatch(t, keys, got)
}

// wait waits until so many keys are in the lines.
func (b *letterPool) wait(t *testing.T, n int) {
	t.Helper()
	waiting := func() bool { return b.Queue.Len() == 0 && b.Waiting() == n }
	require.Eventually(t, waiting, 10*time.Second, time.Millisecond)
}

func TestABackendThatDoesNotAnswerBlocksNoWorkForOthers(t *testing.T) {
	b := newLetterPool(t, 2)
	for _, key := range []string{"x/1", "x/2", "x/3", "x/4", "a/1", "a/2", "a/3"} {
		b.Queue.Add(key)
	}
	b.until(t, "x/1", "x/2", "a/1", "a/2", "a/3")
	close(b.letGo)
	b.until(t, "x/3", "x/4")
	b.Queue.ShutDown()
	<-b.ended
	require.LessOrEqual(t, b.worst['a'], 2)
	require.Equal(t, 2, b.worst['x'], "a backend has so many workers and no more")
	require.Empty(t, b.lines)
}

func TestTheSpareWorkerIsForANamespaceOfWhichNothingIsServed(t *testing.T) {
	b := newLetterPool(t, 2)
	b.Spare = true
	b.Backend = func(context.Context, string) string { return "one" }
	for _, key := range []string{"x/1", "x/2", "x/3", "x/4"} {
		b.Queue.Add(key)
	}
	b.until(t, "x/1", "x/2")
	b.wait(t, 2)
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		b.Queue.Add(key)
	}
	b.until(t, "a/1", "a/2", "b/1")
	b.wait(t, 2)
	require.Equal(t, 2, b.worst['x'])
	b.Queue.Add("xx/1")
	b.until(t, "xx/1")
	b.Queue.Add("a/3")
	b.wait(t, 3)
	close(b.letGo)
	b.until(t, "x/3", "x/4", "a/3")
	b.Queue.ShutDown()
	<-b.ended
	require.Empty(t, b.lines)
}

func TestTheSpareWorkerServesWhoIsPassedOver(t *testing.T) {
	var l line
	l.waiting, l.serving = map[string][]string{}, map[string]int{}
	for _, key := range []string{"x/1", "y/1", "x/2", "y/2", "z/1"} {
		l.Push(key)
	}
	p := Pool[string]{Size: 2, Spare: true}
	take := func() string {
		keys := p.next(&l, 2)
		if len(keys) == 0 {
			return ""
		}
		l.workers++
		l.count(keys, 1)
		return keys[0]
	}
	leave := func(key string) {
		l.workers--
		l.count([]string{key}, -1)
	}
	require.Equal(t, []string{"x/1", "y/1", "z/1", ""}, []string{take(), take(), take(), take()})
	l.Push("z/2")
	leave("x/1")
	require.Equal(t, "x/2", take(), "the worker that is left over is the spare one: nothing of x is served")
	leave("z/1")
	require.Equal(t, []string{"z/2", ""}, []string{take(), take()})
	leave("z/2")
	leave("x/2")
	require.Equal(t, []string{"y/2", ""}, []string{take(), take()}, "there is nothing for the spare one")
}

func TestNamespacesTakeTurnsInTheLineOfABackend(t *testing.T) {
	b := newLetterPool(t, 1)
	b.Backend = func(context.Context, string) string { return "one" }
	b.Queue.Add("x/first")
	b.until(t, "x/first")
	for _, key := range []string{"a/1", "a/2", "a/3", "b/1"} {
		b.Queue.Add(key)
	}
	b.wait(t, 4)
	close(b.letGo)
	b.until(t, "a/1", "b/1", "a/2", "a/3")
	require.Equal(t, []string{"x/first", "a/1", "b/1", "a/2", "a/3"}, b.served)
	b.Queue.ShutDown()
	<-b.ended
}

func TestWhatStillWaitsAtShutdownIsNotServed(t *testing.T) {
	b := newLetterPool(t, 1)
	b.Queue.Add("x/1")
	b.until(t, "x/1")
	b.Queue.Add("x/2")
	require.Eventually(t, func() bool { return b.Queue.Len() == 0 }, 10*time.Second, time.Millisecond)
	b.Queue.ShutDown()
	close(b.letGo)
	<-b.ended
	require.Equal(t, []string{"x/1"}, b.served)
}

func TestKeysThatGatherForABackendAreServedTogether(t *testing.T) {
	queue := New(workqueue.DefaultTypedControllerRateLimiter[string]())
	began, letGo, served := make(chan struct{}), make(chan struct{}), make(chan []string, 9)
	p := Pool[string]{Queue: queue, Size: 1, Batch: 3, Backend: func(context.Context, string) string { return "" }}
	p.Serve = func(_ context.Context, keys []string) {
		if keys[0] == "first" {
			close(began)
			<-letGo
		}
		served <- keys
	}
	for _, key := range []string{"first", "a/1", "a/2", "b/1", "b/2"} {
		p.dispatch(t.Context(), "", key)
	}
	<-began
	close(letGo)
	p.work.Wait()
	close(served)
	var batches [][]string
	for keys := range served {
		batches = append(batches, keys)
	}
	require.Equal(t, [][]string{{"first"}, {"a/1", "b/1", "a/2"}, {"b/2"}}, batches)
}

func TestKeysThatComeWhileAWorkerRestsAreServedTogether(t *testing.T) {
	queue := New(workqueue.DefaultTypedControllerRateLimiter[string]())
	resting, rested, served := make(chan struct{}), make(chan struct{}), make(chan []string, 9)
	p := Pool[string]{Queue: queue, Size: 1, Batch: 9, Backend: func(context.Context, string) string { return "" }}
	p.Serve = func(_ context.Context, keys []string) { served <- keys }
	p.Rest = func(time.Duration) { resting <- struct{}{}; <-rested }
	p.dispatch(t.Context(), "", "first")
	<-resting
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		p.dispatch(t.Context(), "", key)
	}
	rested <- struct{}{}
	<-resting
	close(rested)
	p.work.Wait()
	require.Equal(t, []string{"first"}, <-served)
	require.Equal(t, []string{"a/1", "b/1", "a/2"}, <-served)
}
