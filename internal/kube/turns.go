package kube

import (
	"strings"

	"k8s.io/client-go/util/workqueue"
)

// turns is the order in which the keys of a queue are taken: namespaces take turns, and within a namespace who came
// first goes first. Thousands of HTCJobs of one namespace thus cost another's single one no more than one turn.
// The queue around it serialises its calls.
type turns struct {
	waiting map[string][]string // the keys of each namespace that has any
	order   []string            // those namespaces, whose turn is next first
	n       int                 // keys in all
}

// newTurns is a rate-limited queue in which namespaces take turns.
func newTurns(limiter workqueue.TypedRateLimiter[string]) workqueue.TypedRateLimitingInterface[string] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: &turns{waiting: map[string][]string{}}})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Queue: queue}),
	})
}

// Touch hears of a key that waits already; it keeps its place.
func (*turns) Touch(string) {}

// Push lets a key wait.
func (t *turns) Push(key string) {
	namespace, _, _ := strings.Cut(key, "/")
	if len(t.waiting[namespace]) == 0 {
		t.order = append(t.order, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], key)
	t.n++
}

// Len is how many keys wait.
func (t *turns) Len() int { return t.n }

// Pop takes the key whose turn it is; there is one.
func (t *turns) Pop() string {
	namespace := t.order[0]
	t.order = t.order[1:]
	keys := t.waiting[namespace]
	if len(keys) == 1 {
		delete(t.waiting, namespace)
	} else {
		t.waiting[namespace] = keys[1:]
		t.order = append(t.order, namespace)
	}
	t.n--
	return keys[0]
}
