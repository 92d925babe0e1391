package fairqueue

import (
	"context"
	"sync"
	"time"
)

// Pool serves a queue with a fixed number of workers for each backend, so that a backend whose commands run into their
// deadlines cannot block work for others. Keys leave the queue as they come and wait in a line of their backend, in
// which namespaces take turns as in the queue. A worker ends when its line is empty.
type Pool[B comparable] struct {
	Queue Queue
	Size  int // workers of one backend
	Batch int // keys of one backend that are served together at most; 0: one
	// More, if not nil, is how many further workers a backend has.
	More func(backend B) int
	// Backend returns where the work on a key will be done.
	Backend func(ctx context.Context, key string) B
	Serve   func(ctx context.Context, keys []string)
	// Rest, if not nil, is called by a worker after it has served, with the duration; keys that arrive meanwhile are
	// served together.
	Rest func(took time.Duration)

	mu    sync.Mutex
	lines map[B]*rotation
	busy  map[B]int
	work  sync.WaitGroup
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

// dispatch hands the key to a new worker of the backend, or to its line when all workers are busy.
func (p *Pool[B]) dispatch(ctx context.Context, backend B, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines == nil {
		p.lines, p.busy = map[B]*rotation{}, map[B]int{}
	}
	if p.busy[backend] < p.size(backend) {
		p.busy[backend]++
		p.work.Go(func() { p.worker(ctx, backend, []string{key}) })
		return
	}
	if p.lines[backend] == nil {
		p.lines[backend] = &rotation{waiting: map[string][]string{}}
	}
	p.lines[backend].Push(key)
}

func (p *Pool[B]) size(backend B) int {
	if p.More == nil {
		return p.Size
	}
	return p.Size + p.More(backend)
}

func (p *Pool[B]) worker(ctx context.Context, backend B, keys []string) {
	for ; len(keys) > 0; keys = p.next(backend) {
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
}

// next takes the next keys of a line. If there are none the worker is no longer counted, and must end.
func (p *Pool[B]) next(backend B) (keys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.lines[backend]
	for line != nil && line.Len() > 0 && len(keys) < max(p.Batch, 1) {
		keys = append(keys, line.Pop())
	}
	if len(keys) > 0 {
		return keys
	}
	delete(p.lines, backend)
	if p.busy[backend]--; p.busy[backend] == 0 {
		delete(p.busy, backend)
	}
	return nil
}

// Waiting returns how many keys wait for a worker, in the queue and in the lines.
func (p *Pool[B]) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.Queue.Len()
	for _, line := range p.lines {
		n += line.Len()
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
