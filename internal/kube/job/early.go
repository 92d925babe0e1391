package job

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/pool"
)

// early is what is known of HTCJobs to which the apiserver gives our finalizer at their creation
// (deploy/components/finalizer). Without that, htcd sets it just before an intent, so that it shows that something may
// have been sent even if the ledger is lost. With it, that follows from when the HTCJob was created:
//
//	since this htcd leads    only it can have sent anything, and its ledger says so
//	before                   another may have, and the ledger may have been lost or restored since: the schedd is asked when its turn comes, or when it is deleted
type early struct {
	mu       sync.Mutex
	on       bool            // whether the apiserver does so, and the rest is known
	since    uint64          // the version that the apiserver had when this htcd led already
	doubtful map[string]bool // UIDs of those that were there by then, had the finalizer, and no attempt in their status
}

// lookEarly finds out what was there when this htcd began to lead.
func (c *Controller) lookEarly(ctx context.Context) error {
	if !c.FinalizerAtCreation {
		return nil
	}
	version, err := c.Objects.Version(ctx, c.Namespace)
	if err != nil {
		return fmt.Errorf("ask for the version of the HTCJobs: %w", err)
	}
	since, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return fmt.Errorf("version of the HTCJobs: %w", err)
	}
	doubtful := map[string]bool{}
	err = c.Objects.Each(ctx, c.Namespace, "", func(job *v1alpha1.HTCJob) error {
		if finalized(job) && job.Status.Attempt == 0 {
			doubtful[string(job.UID)] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list HTCJobs: %w", err)
	}
	c.early.mu.Lock()
	defer c.early.mu.Unlock()
	c.early.on, c.early.since, c.early.doubtful = true, since, doubtful
	return nil
}

func finalized(job *v1alpha1.HTCJob) bool { return slices.Contains(job.Finalizers, v1alpha1.Finalizer) }

// known reports whether the finalizer says nothing about a first attempt.
func (e *early) known() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on
}

// unsent reports whether an HTCJob without a row in the ledger and without an attempt in its status was certainly never
// sent.
func (e *early) unsent(job *v1alpha1.HTCJob) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on && job.Status.Attempt == 0 && !e.doubtful[string(job.UID)]
}

// forgotten is lifecycle.Forgotten, except for an HTCJob without rows that was certainly never sent.
func (c *Controller) forgotten(job *v1alpha1.HTCJob, own []ledger.Run) bool {
	return lifecycle.Forgotten(job, own) && !(len(own) == 0 && c.early.unsent(job))
}

// lives reports whether an HTCJob, as the cache has it, certainly has not vanished: it has our finalizer, which nobody
// else removes since this htcd leads, and was there then.
func (e *early) lives(job *v1alpha1.HTCJob) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	version, err := strconv.ParseUint(job.ResourceVersion, 10, 64)
	return e.on && err == nil && version > e.since && finalized(job)
}

func (e *early) settle(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.doubtful, uid)
}

// sentUnknown asks the schedd whether it has anything of a doubtful HTCJob whose turn has come. Only a second answer
// without any settles it.
func (c *Controller) sentUnknown(ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool) (bool, error) {
	if !finalized(job) || !c.early.known() || c.early.unsent(job) {
		return false, nil
	}
	t, _, err := c.Choose(ctx, job, p, c.Site.Policy)
	if err != nil {
		return false, err
	}
	uid := string(job.UID)
	places := reconciler.Places(job, p, t)
	all, err := c.sender.SearchAll(ctx, places, condor.UIDConstraint(uid), "")
	if err != nil {
		return false, fmt.Errorf("look for attempts: %w", err)
	}
	for _, found := range all {
		if len(found.Queued)+len(found.Left)+len(found.Others) > 0 {
			return true, nil
		}
	}
	if err := c.sender.Missing(
		ctx,
		places,
		ledger.Run{UID: uid, Created: job.CreationTimestamp.Time},
		c.Now(),
	); err != nil {
		return false, err
	}
	c.Absences.Clear(uid)
	c.early.settle(uid)
	return false, nil
}

// begins reports whether the first attempt of an HTCJob may be begun without asking the apiserver: the cache shows it
// as it was when that was decided.
func (c *Controller) begins(job *v1alpha1.HTCJob, run ledger.Run) bool {
	now := c.Get(job.Namespace + "/" + job.Name)
	return run.Attempt == 1 && reconciler.Unchanged(job, now) && now.SpecHash() == job.SpecHash() &&
		c.early.unsent(now) &&
		c.early.lives(now)
}

// tryEarly is lookEarly until it succeeds; nothing is done about any HTCJob before.
func (c *Controller) tryEarly(ctx context.Context) {
	for {
		err := c.lookEarly(ctx)
		if err == nil {
			return
		}
		c.Log.Warn().Err(err).Msg("which HTCJobs were there before is not known yet")
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconciler.FirstRetry):
		}
	}
}
