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
	"htc.cern.ch/htcd/internal/lifecycle"
)

// limitError says that the namespace has no room. Its message does not change while the HTCJob waits.
type limitError struct{ message string }

func (e *limitError) Error() string { return e.message }

// admission knows which HTCJobs wait for room in a namespace. The oldest is sent first; otherwise a large HTCJob would wait
// indefinitely while small ones fit. A place is taken before inputs are staged, which may take minutes. Memory is enough: after a
// restart every HTCJob asks again.
type admission struct {
	counting keymutex.KeyMutex // held while one HTCJob of a namespace is counted

	mu      *sync.Mutex
	waiting map[string]map[string]time.Time // creation times, by namespace and key
	taken   map[string]int                  // jobs of those that have a place, but no intent in the ledger yet, by namespace
}

func newAdmission() admission {
	return admission{counting: keymutex.NewHashed(0), mu: &sync.Mutex{}, waiting: map[string]map[string]time.Time{}, taken: map[string]int{}}
}

// first returns the oldest waiting HTCJob of a namespace.
func (a *admission) first(namespace string) (key string, waits bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var oldest time.Time
	for k, created := range a.waiting[namespace] {
		if key == "" || cmp.Or(created.Compare(oldest), cmp.Compare(k, key)) < 0 {
			key, oldest = k, created
		}
	}
	return key, key != ""
}

func (a *admission) enter(namespace, key string, created time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[namespace] == nil {
		a.waiting[namespace] = map[string]time.Time{}
	}
	a.waiting[namespace][key] = created
}

func (a *admission) leave(namespace, key string) (waited bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, waited = a.waiting[namespace][key]
	delete(a.waiting[namespace], key)
	if len(a.waiting[namespace]) == 0 {
		delete(a.waiting, namespace)
	}
	return waited
}

// take adds to the jobs of a namespace that have a place, and returns how many there were.
func (a *admission) take(namespace string, jobs int) (before int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before = a.taken[namespace]
	if a.taken[namespace] += jobs; a.taken[namespace] == 0 {
		delete(a.taken, namespace)
	}
	return before
}

// admit returns a nil error if the namespace has room for so many jobs of this HTCJob. They have a place until leave is called,
// after their intent was written.
func (c *Controller) admit(ctx context.Context, job *v1alpha1.HTCJob, jobs int) (leave func(), err error) {
	if c.Site.MaxOpen == 0 {
		return func() {}, nil
	}
	namespace, key := job.Namespace, job.Namespace+"/"+job.Name
	c.admission.counting.LockKey(namespace)
	defer func() { _ = c.admission.counting.UnlockKey(namespace) }() // fails only if it is not locked
	open := c.admission.take(namespace, 0)                           // first, so that an intent written meanwhile counts twice rather than never
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		recorded, err := tx.OpenProcs(namespace)
		open += recorded
		return err
	})
	if err != nil {
		return nil, err
	}
	c.admission.enter(namespace, key, job.CreationTimestamp.Time)
	if first, _ := c.admission.first(namespace); first != key || open+jobs > c.Site.MaxOpen {
		return nil, &limitError{fmt.Sprintf("namespace %s may have %s that have not ended (--max-open-per-namespace): %s sent as soon as earlier ones have ended, oldest HTCJob first",
			namespace, lifecycle.Plural(c.Site.MaxOpen, "job"), lifecycle.IsOrAre(jobs, "job"))}
	}
	c.admission.take(namespace, jobs)
	c.stopWaiting(key)
	return func() { c.admission.take(namespace, -jobs); c.wakeNext(namespace) }, nil
}

// stopWaiting is called whenever an HTCJob does not, or no longer, wait for room. The next may fit now.
func (c *Controller) stopWaiting(key string) {
	namespace, _, err := cache.SplitMetaNamespaceKey(key)
	if err == nil && c.admission.leave(namespace, key) {
		c.wakeNext(namespace)
	}
}

// wakeNext lets the oldest waiting HTCJob of a namespace ask again.
func (c *Controller) wakeNext(namespace string) {
	if key, waits := c.admission.first(namespace); waits {
		c.actions.forget(key)
		c.actions.add(submitting, key)
	}
}
