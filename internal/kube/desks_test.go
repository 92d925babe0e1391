package kube

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/internal/schedd"
)

// bureau is desks over a queue of keys that begin with the letter of their place. What goes to x does not come back before it is
// let go.
type bureau struct {
	desks
	letGo, ended chan struct{}

	mu            sync.Mutex
	served        []string
	inside, worst map[byte]int
	reached       chan string
}

func newBureau(t *testing.T, most int) *bureau {
	t.Helper()
	b := &bureau{letGo: make(chan struct{}), ended: make(chan struct{}), inside: map[byte]int{}, worst: map[byte]int{}, reached: make(chan string, 100)}
	b.queue, b.most = newTurns(workqueue.DefaultTypedControllerRateLimiter[string]()), most
	b.where = func(_ context.Context, key string) schedd.Place { return schedd.Place{Schedd: key[:1]} }
	b.serve = oneByOne(func(_ context.Context, key string) {
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
	go func() { b.run(context.WithoutCancel(t.Context())); close(b.ended) }()
	return b
}

func (b *bureau) until(t *testing.T, keys ...string) {
	t.Helper()
	var got []string
	for range keys {
		got = append(got, <-b.reached)
	}
	require.ElementsMatch(t, keys, got)
}

func TestAPlaceThatDoesNotAnswerKeepsNobodyWaitingWhoGoesElsewhere(t *testing.T) {
	b := newBureau(t, 2)
	for _, key := range []string{"x/1", "x/2", "x/3", "x/4", "a/1", "a/2", "a/3"} {
		b.queue.Add(key)
	}
	b.until(t, "x/1", "x/2", "a/1", "a/2", "a/3")
	close(b.letGo)
	b.until(t, "x/3", "x/4")
	b.queue.ShutDown()
	<-b.ended
	require.LessOrEqual(t, b.worst['a'], 2)
	require.Equal(t, 2, b.worst['x'], "a place has so many workers and no more")
	require.Empty(t, b.busy)
	require.Empty(t, b.lines)
}

func TestNamespacesTakeTurnsInTheLineOfAPlace(t *testing.T) {
	b := newBureau(t, 1)
	b.where = func(context.Context, string) schedd.Place { return schedd.Place{Schedd: "one"} }
	b.queue.Add("x/first")
	b.until(t, "x/first")
	for _, key := range []string{"a/1", "a/2", "a/3", "b/1"} {
		b.queue.Add(key)
	}
	waiting := func() int {
		b.desks.mu.Lock()
		defer b.desks.mu.Unlock()
		if b.lines[schedd.Place{Schedd: "one"}] == nil {
			return 0
		}
		return b.lines[schedd.Place{Schedd: "one"}].Len()
	}
	require.Eventually(t, func() bool { return waiting() == 4 }, 10*time.Second, time.Millisecond)
	close(b.letGo)
	b.until(t, "a/1", "b/1", "a/2", "a/3")
	require.Equal(t, []string{"x/first", "a/1", "b/1", "a/2", "a/3"}, b.served)
	b.queue.ShutDown()
	<-b.ended
}

func TestWhatStandsInLineAtTheEndIsLeftForTheNextHtcd(t *testing.T) {
	b := newBureau(t, 1)
	b.queue.Add("x/1")
	b.until(t, "x/1")
	b.queue.Add("x/2")
	require.Eventually(t, func() bool { return b.queue.Len() == 0 }, 10*time.Second, time.Millisecond)
	b.queue.ShutDown()
	close(b.letGo)
	<-b.ended
	require.Equal(t, []string{"x/1"}, b.served)
}

func TestWhatGathersForAPlaceIsServedTogether(t *testing.T) {
	queue := newTurns(workqueue.DefaultTypedControllerRateLimiter[string]())
	began, letGo, served := make(chan struct{}), make(chan struct{}), make(chan []string, 9)
	d := desks{queue: queue, most: 1, batch: 3, where: func(context.Context, string) schedd.Place { return schedd.Place{} }}
	d.serve = func(_ context.Context, keys []string) {
		if keys[0] == "first" {
			close(began)
			<-letGo
		}
		served <- keys
	}
	for _, key := range []string{"first", "a/1", "a/2", "b/1", "b/2"} {
		d.send(t.Context(), schedd.Place{}, key)
	}
	<-began
	close(letGo)
	d.work.Wait()
	close(served)
	var batches [][]string
	for keys := range served {
		batches = append(batches, keys)
	}
	require.Equal(t, [][]string{{"first"}, {"a/1", "b/1", "a/2"}, {"b/2"}}, batches)
}

func TestWhatComesWhileAWorkerRestsIsServedTogether(t *testing.T) {
	queue := newTurns(workqueue.DefaultTypedControllerRateLimiter[string]())
	resting, rested, served := make(chan struct{}), make(chan struct{}), make(chan []string, 9)
	d := desks{queue: queue, most: 1, batch: 9, where: func(context.Context, string) schedd.Place { return schedd.Place{} }}
	d.serve = func(_ context.Context, keys []string) { served <- keys }
	d.rest = func(time.Duration) { resting <- struct{}{}; <-rested }
	d.send(t.Context(), schedd.Place{}, "first")
	<-resting
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		d.send(t.Context(), schedd.Place{}, key)
	}
	rested <- struct{}{}
	<-resting
	close(rested)
	d.work.Wait()
	require.Equal(t, []string{"first"}, <-served)
	require.Equal(t, []string{"a/1", "b/1", "a/2"}, <-served)
}
