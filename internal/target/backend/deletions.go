package backend

import (
	"context"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// mostDeleted is how many objects' jobs one condor_rm removes.
const mostDeleted = 64

// deletions removes the jobs of deleted objects. For each condor_rm and condor_q a schedd evaluates a constraint for
// every job in its queue, so what comes while an account's are under way, or in the Rest after them, goes together in
// the next ones. The zero value is ready to use.
type deletions struct {
	mu      sync.Mutex
	waiting map[together][]deletion // the key is there while it is served
}

// together is what the removals of one condor_rm have in common.
type together struct {
	id     schedd.Identity
	reason string
}

type deletion struct {
	uid  string
	done chan<- removal
}

// removal is what came of a deletion.
type removal struct {
	left Left
	err  error
}

// join removes the jobs of an object, together with those of others, and waits for it. The contexts of all callers are
// to end at the same time.
func (d *deletions) join(ctx context.Context, o Owners, t together, uid string) (Left, error) {
	done := make(chan removal, 1)
	d.mu.Lock()
	if d.waiting == nil {
		d.waiting = map[together][]deletion{}
	}
	_, served := d.waiting[t]
	d.waiting[t] = append(d.waiting[t], deletion{uid, done})
	d.mu.Unlock()
	if !served {
		go d.serve(ctx, o, t)
	}
	r := <-done
	return r.left, r.err
}

// serve removes jobs until nobody waits.
func (d *deletions) serve(ctx context.Context, o Owners, t together) {
	for some := d.next(t); len(some) > 0; some = d.next(t) {
		began := time.Now()
		uids := make([]string, len(some))
		for i, one := range some {
			uids[i] = one.uid
		}
		left, err := o.removeTagged(ctx, t, uids...)
		for _, one := range some {
			one.done <- removal{left[one.uid], err}
		}
		if !d.full(t) {
			select {
			case <-time.After(Rest(time.Since(began))):
			case <-ctx.Done():
			}
		}
	}
}

// full reports whether as many wait as go together.
func (d *deletions) full(t together) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting[t]) >= mostDeleted
}

func (d *deletions) next(t together) (some []deletion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(d.waiting[t]), mostDeleted)
	some, d.waiting[t] = d.waiting[t][:n:n], d.waiting[t][n:]
	if n == 0 {
		delete(d.waiting, t)
	}
	return some
}

// removeTagged removes the jobs of these objects and returns what each has left in the queue, by UID.
func (o Owners) removeTagged(ctx context.Context, t together, uids ...string) (map[string]Left, error) {
	these := condor.UIDsConstraint(uids...)
	began, err := o.condorRm(ctx, t.id, these, t.reason)
	if err != nil {
		return nil, err
	}
	left := make(map[string]Left, len(uids))
	there := schedd.Query{Where: these, Presence: true, UIDs: true}
	err = o.Schedd.Query(ctx, t.id, there, func(j condor.Job) error {
		of := left[j.Tag.UID]
		of.add(j)
		left[j.Tag.UID] = of
		return nil
	})
	took := time.Since(began)
	for _, uid := range uids {
		of := left[uid]
		of.Took = took
		left[uid] = of
	}
	return left, err
}
