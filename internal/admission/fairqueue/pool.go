package fairqueue

import (
	"context"
	"sync"
	"time"
)

// Pool serves a queue with a fixed number of workers for each backend, so that a backend whose commands run into their
// deadlines cannot block work for others. Keys leave the queue as they come and wait in a line of their backend, in
// which namespaces take turns as in the queue.
type Pool[B comparable] struct {
	Queue Queue
	Size  int // workers of one backend
	Batch int // keys of one backend that are served together at most; 0: one
	// More, if not nil, is how many further workers a backend has.
	More func(backend B) int
	// Spare gives each backend one worker beyond those, for a namespace of which nothing is being served there: work
	// for others, however slow, does not keep it waiting.
	Spare bool
	// Backend returns where the work on a key will be done.
	Backend func(ctx context.Context, key string) B
	Serve   func(ctx context.Context, keys []string)
	// Rest, if not nil, is called by a worker after it has served, with the duration; keys that arrive meanwhile are
	// served together.
	Rest func(took time.Duration)

	mu    sync.Mutex
	lines map[B]*line
	work  sync.WaitGroup
}

// line is the work of one backend.
type line struct {
	rotation                // the keys that wait
	workers  int            // those at work
	serving  map[string]int // by namespace: how many keys they serve
}

// Run serves keys until the queue is shut down, then waits for those in progress. Keys still waiting are not served.
func (p *Pool[B]) Run(ctx context.Context) {
	for {
		key, shutdown := p.Queue.Get()
		if shutdown {
			break
		}
		if p.Queue.ShuttingDown() {
			p.Queue.Done(key)
			continue
		}
		p.dispatch(ctx, p.Backend(ctx, key), key)
	}
	p.work.Wait()
}

// dispatch puts the key into the line of its backend.
func (p *Pool[B]) dispatch(ctx context.Context, backend B, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines == nil {
		p.lines = map[B]*line{}
	}
	if p.lines[backend] == nil {
		p.lines[backend] = &line{rotation: rotation{waiting: map[string][]string{}}, serving: map[string]int{}}
	}
	p.lines[backend].Push(key)
	p.start(ctx, backend)
}

// start starts all workers that a backend may have and that have something to do.
func (p *Pool[B]) start(ctx context.Context, backend B) {
	for l := p.lines[backend]; ; {
		keys := p.next(l, p.size(backend))
		if len(keys) == 0 {
			return
		}
		l.workers++
		l.count(keys, 1)
		p.work.Go(func() {
			p.serve(ctx, keys)
			p.mu.Lock()
			defer p.mu.Unlock()
			l.workers--
			l.count(keys, -1)
			if p.start(ctx, backend); l.workers == 0 {
				delete(p.lines, backend)
			}
		})
	}
}

func (p *Pool[B]) size(backend B) int {
	if p.More == nil {
		return p.Size
	}
	return p.Size + p.More(backend)
}

func (p *Pool[B]) serve(ctx context.Context, keys []string) {
	began := time.Now()
	if !p.Queue.ShuttingDown() {
		p.Serve(ctx, keys)
	}
	for _, key := range keys {
		p.Queue.Done(key)
	}
	if p.Rest != nil {
		p.Rest(time.Since(began))
	}
}

// next takes the keys of a line for one more worker than it has; none if it may have no more, or there is nothing for
// it.
func (p *Pool[B]) next(l *line, size int) (keys []string) {
	switch {
	case l.workers < size:
		for l.Len() > 0 && len(keys) < max(p.Batch, 1) {
			keys = append(keys, l.Pop())
		}
	case l.workers == size && p.Spare:
		if key, ok := l.PopOther(l.serving); ok {
			keys = []string{key}
		}
	}
	return keys
}

// count adds n for each of the keys to what is served of its namespace.
func (l *line) count(keys []string, n int) {
	for _, key := range keys {
		namespace := namespaceOf(key)
		if l.serving[namespace] += n; l.serving[namespace] == 0 {
			delete(l.serving, namespace)
		}
	}
}

// Waiting returns how many keys wait for a worker, in the queue and in the lines.
func (p *Pool[B]) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.Queue.Len()
	for _, l := range p.lines {
		n += l.Len()
	}
	return n
}

// Each returns a Pool.Serve that serves keys one by one.
func Each(serve func(ctx context.Context, key string)) func(context.Context, []string) {
	return func(ctx context.Context, keys []string) {
		for _, key := range keys {
			serve(ctx, key)
		}
	}
}
