package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/internal/schedd"
)

// desks are the workers of a queue, so many for each place: a schedd whose commands run into their deadlines keeps nobody
// waiting who goes to another. Keys leave the queue as they come and stand in the line of their place, where namespaces
// take turns as they do in the queue. A worker goes when its line is empty.
type desks struct {
	queue workqueue.TypedRateLimitingInterface[string]
	most  int // workers of one place
	batch int // keys of one place that are served together at most
	where func(ctx context.Context, key string) schedd.Place
	serve func(ctx context.Context, keys []string)
	rest  func(took time.Duration) // what a worker does when it has served, so that the next come together; nil: nothing

	mu    sync.Mutex
	lines map[schedd.Place]*turns
	busy  map[schedd.Place]int
	work  sync.WaitGroup
}

// run works until the queue is shut down, then finishes what has been begun.
func (d *desks) run(ctx context.Context) {
	for {
		key, shutdown := d.queue.Get()
		if shutdown {
			break
		}
		if d.queue.ShuttingDown() {
			d.queue.Done(key)
			continue
		}
		d.send(ctx, d.where(ctx, key), key)
	}
	d.work.Wait()
}

// send gives the key to a worker of the place, or lets it wait for one.
func (d *desks) send(ctx context.Context, place schedd.Place, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lines == nil {
		d.lines, d.busy = map[schedd.Place]*turns{}, map[schedd.Place]int{}
	}
	if d.busy[place] < d.most {
		d.busy[place]++
		d.work.Go(func() { d.sit(ctx, place, []string{key}) })
		return
	}
	if d.lines[place] == nil {
		d.lines[place] = &turns{waiting: map[string][]string{}}
	}
	d.lines[place].Push(key)
}

// sit is one worker.
func (d *desks) sit(ctx context.Context, place schedd.Place, keys []string) {
	for ; len(keys) > 0; keys = d.next(place) {
		began := time.Now()
		if !d.queue.ShuttingDown() {
			d.serve(ctx, keys)
		}
		for _, key := range keys {
			d.queue.Done(key)
		}
		if d.rest != nil {
			d.rest(time.Since(began))
		}
	}
}

// maxRest bounds what rest adds to the wait of a job that ended, and to a shutdown.
const maxRest = time.Second

// rest leaves a schedd nine tenths of the time, when nobody notices.
func rest(took time.Duration) { time.Sleep(min(9*took, maxRest)) }

// next takes the keys whose turn it is; without one the worker goes.
func (d *desks) next(place schedd.Place) (keys []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := d.lines[place]
	for line != nil && line.Len() > 0 && len(keys) < max(d.batch, 1) {
		keys = append(keys, line.Pop())
	}
	if len(keys) > 0 {
		return keys
	}
	delete(d.lines, place)
	if d.busy[place]--; d.busy[place] == 0 {
		delete(d.busy, place)
	}
	return nil
}

// oneByOne serves keys that are not served together.
func oneByOne(serve func(ctx context.Context, key string)) func(context.Context, []string) {
	return func(ctx context.Context, keys []string) {
		for _, key := range keys {
			serve(ctx, key)
		}
	}
}

// deskOf is the place whose workers act for an HTCJob: where it is, or will be. Of several that do not all answer it is one
// that does not, since that one will be waited for.
func (c *Controller) deskOf(e errand) func(context.Context, string) schedd.Place {
	return func(ctx context.Context, key string) schedd.Place {
		var place schedd.Place
		job := c.get(key)
		if job != nil {
			place = c.nextPlace(job)
		}
		runs, err := c.runsOf(ctx, key)
		if err != nil || job != nil && e == submitting {
			return place
		}
		for _, h := range homesOf(runs) {
			if place = h.place; c.backends.state(place).down {
				return place
			}
		}
		return place
	}
}

// deskOfRun is the same for the newest run of a UID.
func (c *Controller) deskOfRun(ctx context.Context, uid string) schedd.Place {
	run, err := c.latest(ctx, uid)
	if err != nil {
		return schedd.Place{}
	}
	return homeOf(run).place
}
