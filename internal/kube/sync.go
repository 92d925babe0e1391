package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// sync makes the status of one HTCJob true and queues what only HTCondor can do. It may run at any
// moment, any number of times.
func (c *Controller) sync(ctx context.Context, key string) error {
	job := c.get(key)
	if job == nil {
		c.throttle.forget(key)
		c.stopWaiting(key)
		c.leftLogs.clear(key)
		c.wakeNext(strings.Split(key, "/")[0])
		return c.syncGone(ctx, key)
	}
	return c.syncObject(ctx, key, job)
}

// syncObject is sync for an object at hand. Only one at a time works on a key, or an older status might be written last.
func (c *Controller) syncObject(ctx context.Context, key string, job *v1alpha1.HTCJob) error {
	c.syncing.LockKey(key)
	defer func() { _ = c.syncing.UnlockKey(key) }() // fails only where it is not locked
	s, err := c.gather(ctx, job)
	if err != nil {
		return err
	}
	if err := c.nameSpec(ctx, s); err != nil {
		return err
	}
	d := plan(s)
	if d.action != actSubmit {
		c.stopWaiting(key)
	}
	// A submission under way looks like one that was broken off. What becomes of it is told when it is through: usually at once.
	if since, claimed := c.actions.Since(key); claimed && d.action == actRecover && c.Now().Sub(since) < betweenWrites {
		c.queue.AddAfter(key, betweenWrites)
		return nil
	}
	difficulty, stuck := c.blockers.get(key)
	// Of a new HTCJob nothing is said for a moment, either: usually its ids can be.
	if d.action == actSubmit && job.Status.ObservedGeneration == 0 && !stuck {
		if wait := c.throttle.begin(key, c.Now()); wait > 0 {
			c.actions.add(submitting, key)
			c.queue.AddAfter(key, wait)
			return nil
		}
	}
	if s.orphans && !stuck {
		c.actions.add(classOf(d.action), key)
	}
	if d.action == actRest {
		c.blockers.clear(key)
		stuck = false
		if job.DeletionTimestamp != nil {
			return nil
		}
	}
	// The status comes first: the action then works with the object as it stands afterwards.
	v := view{decision: d, blocker: difficulty, stuck: stuck, secret: c.prover.Of(accountOf(job)), logs: c.logsViewOf(key)}
	if t, is := c.unfetched.get(key); is {
		v.unfetched = &t
	}
	written, err := c.report(ctx, s, v)
	if err == nil {
		c.leaveLogs(key, s)
	}
	if d.action != actRest && (!stuck || c.Now().After(difficulty.retry)) {
		c.actions.add(classOf(d.action), key)
	}
	if at := expiry(s); err == nil && !written && !at.IsZero() && !c.Now().Before(at) {
		return c.expire(ctx, job)
	}
	c.wake(key, s)
	return err
}

// nameSpec adds to a run of an older htcd by what its spec is told from others, as long as the generation shows that the
// HTCJob still has it. Afterwards an edit of what is not sent is none of that run's business, either.
func (c *Controller) nameSpec(ctx context.Context, s situation) error {
	if s.run == nil || s.run.SpecHash != "" || s.run.Generation != s.job.Generation {
		return nil
	}
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		run, err := tx.Run(s.run.UID, s.run.Attempt)
		if err != nil {
			return err
		}
		run.SpecHash = s.job.SpecHash()
		return tx.UpdateRun(run)
	})
	if err != nil {
		return fmt.Errorf("name the spec of attempt %d: %w", s.run.Attempt, err)
	}
	s.run.SpecHash = s.job.SpecHash()
	return nil
}

// wake looks at an HTCJob again when one of its times has come.
func (c *Controller) wake(key string, s situation) {
	for _, at := range []time.Time{deadline(s), expiry(s)} {
		if wait := at.Sub(c.Now()); !at.IsZero() && wait > 0 {
			c.queue.AddAfter(key, wait)
		}
	}
}

// syncGone queues the removal of a vanished HTCJob when the ledger still has something of it.
func (c *Controller) syncGone(ctx context.Context, key string) error {
	runs, err := c.runsOf(ctx, key)
	if err == nil && len(runs) == 0 {
		c.orphans.Deletions.Forget(key)
	}
	if err == nil && len(runs) > 0 {
		if difficulty, stuck := c.blockers.get(key); !stuck || c.Now().After(difficulty.retry) {
			c.actions.add(removing, key)
		}
	}
	return err
}

// get returns the HTCJob as last seen or written, nil when it is gone. It is shared: copy before changing.
func (c *Controller) get(key string) *v1alpha1.HTCJob {
	object, found, err := c.cache.GetByKey(key)
	if err != nil || !found {
		return nil
	}
	return object.(*v1alpha1.HTCJob)
}

// gather reads everything the decision needs.
func (c *Controller) gather(ctx context.Context, job *v1alpha1.HTCJob) (situation, error) {
	s := situation{job: job}
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		s = situation{job: job, now: c.Now()}
		runs, err := tx.Runs(ledger.RunFilter{Namespace: job.Namespace, Name: job.Name})
		if err != nil {
			return err
		}
		for _, run := range runs {
			switch {
			case run.UID != string(job.UID):
				s.orphans = true
			case s.run == nil || run.Attempt > s.run.Attempt:
				s.run = &run
			}
		}
		if s.run != nil && ahead(job.Status, *s.run) {
			s.run = nil // as if that attempt had been lost
		}
		if s.run == nil {
			return nil
		}
		run := s.run
		if s.counts, err = tx.Counts(run.UID, run.Attempt); err != nil {
			return err
		}
		if s.counts.Failed > 0 {
			filter := ledger.ProcFilter{Status: ledger.StatusFailed, Limit: v1alpha1.MaxFailures}
			if run.Stop == crosscheck.StopSuspended {
				filter.Besides = crosscheck.StopSuspended // they have not failed
			}
			if s.failures, err = tx.Procs(run.UID, run.Attempt, filter); err != nil {
				return err
			}
		}
		if run.Stop != "" {
			if s.stopped, err = tx.CountReason(run.UID, run.Attempt, run.Stop); err != nil {
				return err
			}
		}
		if run.OutputDir != "" {
			if s.output, err = tx.Output(run.UID, run.Attempt); err != nil {
				return err
			}
			s.unfetched = run.State == ledger.Submitted && (!run.Confirmed || s.output.Waiting > 0)
		}
		if s.counts.Held > 0 {
			held, err := tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Status: ledger.StatusOpen, JobStatus: jobHeld, Limit: 1})
			if err != nil {
				return err
			}
			if len(held) > 0 {
				s.held = &held[0]
			}
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("gather: %w", err)
	}
	return s, nil
}

// report makes the object say what its status should be, and tells what happened. It returns whether there was a difference.
func (c *Controller) report(ctx context.Context, s situation, v view) (differs bool, err error) {
	v.now = c.Now()
	v.backend = c.answering.State(c.endpointOf(s, v))
	status := newStatus(s, v)
	if equality.Semantic.DeepEqual(status, s.job.Status) {
		return false, nil
	}
	before, after, key := s.job.Status, status, s.job.Namespace+"/"+s.job.Name
	if onlyChecked(before, after) && (after.Phase.Terminal() || after.LastChecked.Sub(before.LastChecked.Time) < crosscheck.BetweenChecks) {
		return false, nil
	}
	if wait := c.throttle.wait(key, v.now); wait > 0 && onlyCounts(before, after) {
		c.queue.AddAfter(key, wait)
		return true, nil
	}
	written, err := c.Objects.SetStatus(ctx, s.job, status)
	if err != nil {
		return true, fmt.Errorf("write status: %w", err)
	}
	c.cache.Mutation(written)
	if after.Active < before.Active {
		c.wakeNext(s.job.Namespace)
	}
	if after.Phase.Terminal() {
		c.throttle.forget(key)
	} else {
		c.throttle.wrote(key, v.now)
	}
	c.tellNews(s.job, eventsOf(before, after, s))
	return true, nil
}

// onlyCounts tells whether two statuses differ in nothing but how many jobs are in which state, and since when that is known.
func onlyCounts(before, after v1alpha1.HTCJobStatus) bool {
	before.Active, before.Succeeded, before.Failed = after.Active, after.Succeeded, after.Failed
	before.Idle, before.Running, before.Held = after.Idle, after.Running, after.Held
	before.Failures, before.LastChecked = after.Failures, after.LastChecked
	return equality.Semantic.DeepEqual(before, after)
}

// onlyChecked tells whether two statuses differ in nothing but when HTCondor was last asked.
func onlyChecked(before, after v1alpha1.HTCJobStatus) bool {
	if before.LastChecked == nil || after.LastChecked == nil {
		return false
	}
	before.LastChecked = after.LastChecked
	return equality.Semantic.DeepEqual(before, after)
}

// seconds cuts a time to what the API keeps.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }
