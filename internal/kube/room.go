package kube

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/keymutex"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// reasonNamespaceLimit is why an HTCJob waits whose namespace has as many open jobs as it may have.
const reasonNamespaceLimit = "NamespaceLimit"

// limitError says that there is no room. Its message does not change while the HTCJob waits.
type limitError struct{ message string }

func (e *limitError) Error() string { return e.message }

// rooms knows who waits for room in a namespace. Who was created first is sent first, or a large HTCJob would wait for
// ever while small ones fit. Memory is enough: after a restart everybody asks anew.
type rooms struct {
	beginning keymutex.KeyMutex // one HTCJob of a namespace at a time is counted and begun

	mu      *sync.Mutex
	waiting map[string]map[string]time.Time // by namespace and key: when the HTCJob was created
}

func newRooms() rooms {
	return rooms{beginning: keymutex.NewHashed(0), mu: &sync.Mutex{}, waiting: map[string]map[string]time.Time{}}
}

// first returns who has waited longest in a namespace.
func (r *rooms) first(namespace string) (key string, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Time
	for k, created := range r.waiting[namespace] {
		if key == "" || cmp.Or(created.Compare(oldest), cmp.Compare(k, key)) < 0 {
			key, oldest = k, created
		}
	}
	return key, key != ""
}

func (r *rooms) enter(namespace, key string, created time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[namespace] == nil {
		r.waiting[namespace] = map[string]time.Time{}
	}
	r.waiting[namespace][key] = created
}

func (r *rooms) leave(namespace, key string) (waited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waited = r.waiting[namespace][key]
	delete(r.waiting[namespace], key)
	if len(r.waiting[namespace]) == 0 {
		delete(r.waiting, namespace)
	}
	return waited
}

// room returns nil when the namespace may have the jobs of this HTCJob, too. Until leave is called, which is after its
// intent was written, no other of the namespace is counted.
func (c *Controller) room(ctx context.Context, job *v1alpha1.HTCJob) (leave func(), err error) {
	if c.Site.MaxOpen == 0 {
		return func() {}, nil
	}
	namespace, key := job.Namespace, job.Namespace+"/"+job.Name
	c.rooms.beginning.LockKey(namespace)
	unlock := func() { _ = c.rooms.beginning.UnlockKey(namespace) } // fails only where it is not locked
	var open int
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		open, err = tx.OpenProcs(namespace)
		return err
	})
	if err != nil {
		unlock()
		return nil, err
	}
	c.rooms.enter(namespace, key, job.CreationTimestamp.Time)
	if first, _ := c.rooms.first(namespace); first != key || open+job.Queue() > c.Site.MaxOpen {
		unlock()
		return nil, &limitError{fmt.Sprintf("namespace %s may have %s that have not ended (--max-open-per-namespace): %s sent as soon as earlier ones have ended, oldest HTCJob first",
			namespace, plural(c.Site.MaxOpen, "job"), isOrAre(job.Queue(), "job"))}
	}
	return func() { unlock(); c.leaveRoom(key) }, nil
}

func isOrAre(n int, noun string) string {
	if n == 1 {
		return plural(n, noun) + " is"
	}
	return plural(n, noun) + " are"
}

// leaveRoom is called whenever an HTCJob does not wait, or no longer. The next may fit now.
func (c *Controller) leaveRoom(key string) {
	namespace, _, err := cache.SplitMetaNamespaceKey(key)
	if err == nil && c.rooms.leave(namespace, key) {
		c.wakeNext(namespace)
	}
}

// wakeNext lets the HTCJob that has waited longest in a namespace ask again.
func (c *Controller) wakeNext(namespace string) {
	if key, waits := c.rooms.first(namespace); waits {
		c.actions.forget(key)
		c.actions.add(submitting, key)
	}
}
