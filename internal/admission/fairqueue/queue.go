// Package fairqueue has work queues in which namespaces take turns, and worker pools that serve them.
//
// A key is "namespace/name"; a key without a slash counts as a namespace of its own. Within a namespace keys are served
// first come, first served. Thousands of keys of one namespace thus delay a single key of another by at most one turn.
package fairqueue

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/util/workqueue"
)

// Queue is client-go's rate-limited work queue: a key that is added twice is served once, and never by two workers at a
// time.
type Queue = workqueue.TypedRateLimitingInterface[string]

// New returns a queue in which namespaces take turns. limiter decides when keys added with AddRateLimited come back.
func New(limiter workqueue.TypedRateLimiter[string]) Queue {
	queue := workqueue.NewTypedWithConfig(
		workqueue.TypedQueueConfig[string]{Queue: &rotation{waiting: map[string][]string{}}},
	)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[string]{Queue: queue},
		),
	})
}

// Drain serves a queue with one worker until it is shut down. Keys still waiting are not served.
func Drain(ctx context.Context, queue Queue, one func(ctx context.Context, key string)) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if !queue.ShuttingDown() {
			one(ctx, key)
		}
		queue.Done(key)
	}
}

// rotation is the order of a queue. It is not safe for concurrent use; the queue around it serialises its calls.
type rotation struct {
	waiting map[string][]string // the keys of each namespace that has any
	order   []string            // those namespaces, the next one first
	n       int                 // keys in all
}

// Touch is called for a key that already waits; it keeps its place.
func (*rotation) Touch(string) {}

// Push adds a key.
func (r *rotation) Push(key string) {
	namespace := namespaceOf(key)
	if len(r.waiting[namespace]) == 0 {
		r.order = append(r.order, namespace)
	}
	r.waiting[namespace] = append(r.waiting[namespace], key)
	r.n++
}

// Len returns how many keys wait.
func (r *rotation) Len() int { return r.n }

// Pop removes and returns the next key; there must be one.
func (r *rotation) Pop() string { return r.pop(0) }

// PopOther is Pop for the keys of namespaces other than these; ok is false if there is none.
func (r *rotation) PopOther(than map[string]int) (key string, ok bool) {
	at := slices.IndexFunc(r.order, func(namespace string) bool { return than[namespace] == 0 })
	if at < 0 {
		return "", false
	}
	return r.pop(at), true
}

// pop removes and returns the next key of the namespace at a place of the order.
func (r *rotation) pop(at int) string {
	namespace := r.order[at]
	if at == 0 {
		r.order = r.order[1:]
	} else {
		r.order = slices.Delete(r.order, at, at+1)
	}
	keys := r.waiting[namespace]
	if len(keys) == 1 {
		delete(r.waiting, namespace)
	} else {
		r.waiting[namespace] = keys[1:]
		r.order = append(r.order, namespace)
	}
	r.n--
	return keys[0]
}

func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}
