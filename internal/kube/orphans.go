package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// An HTCJob whose finalizer was taken away by hand takes its jobs and its output with it. One that vanished because an older
// state of etcd was put back looks the same: what tells the two apart is how many of them there are. More than a few, and more
// than a share, that vanished without a deletion having been seen are kept until somebody says that they are to be removed.

// fewOrphans are removed however few HTCJobs there are; so is up to one of orphanShare, however many.
const (
	fewOrphans  = 5
	orphanShare = 100
)

const reasonOrphansKept = "OrphansKept"

// keptError says that nothing of an HTCJob is removed although its object is gone.
type keptError struct{}

func (*keptError) Error() string {
	return "an earlier HTCJob of this name is in the ledger and vanished without having been deleted, like many others, as when an older state of etcd " +
		"is put back: its jobs and its output are kept, and nothing is sent under its name, until an administrator puts the newer state back, " +
		"or has them removed (htcd reconcile --once --remove-orphans)"
}

func isKept(err error) bool {
	_, is := errors.AsType[*keptError](err)
	return is
}

// mayRemove returns nil when what the ledger has of an HTCJob whose object is gone may be removed, a *keptError when not.
func (c *Controller) mayRemove(ctx context.Context, key, uid string) error {
	if c.deletions.seen(key, uid) {
		return nil
	}
	orphans, err := c.orphans(ctx)
	if err != nil {
		return err
	}
	remove, known := orphans[uid]
	if !known {
		return c.judgeOrphan(ctx, uid)
	}
	if !remove {
		return &keptError{}
	}
	return nil
}

// judgeOrphan looks at all of them at once, not once for each.
func (c *Controller) judgeOrphan(ctx context.Context, uid string) error {
	c.judged.Lock()
	defer c.judged.Unlock()
	if c.judged.few[uid] && c.Now().Sub(c.judged.at) < absentTwice {
		return nil
	}
	kept, few, err := c.keepOrphans(ctx, true)
	if err != nil {
		return err
	}
	c.judged.at, c.judged.few = c.Now(), few
	if slices.ContainsFunc(kept, func(run ledger.Run) bool { return run.UID == uid }) {
		return &keptError{}
	}
	return nil
}

// judged are those that were found to be few.
type judged struct {
	sync.Mutex
	at  time.Time
	few map[string]bool
}

func (c *Controller) orphans(ctx context.Context) (orphans map[string]bool, err error) {
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		orphans, err = tx.Orphans()
		return err
	})
	return orphans, err
}

// watchOrphans looks again while some are kept: their objects may have been put back.
func (c *Controller) watchOrphans(ctx context.Context) error {
	orphans, err := c.orphans(ctx)
	if err != nil || len(orphans) == 0 {
		return err
	}
	_, _, err = c.keepOrphans(ctx, true)
	return err
}

// keepOrphans compares the ledger with the apiserver and returns a run of each HTCJob that is kept, and the others that have
// no object. It writes down what is kept, so that HTCJobs which come later do not make that a small share.
func (c *Controller) keepOrphans(ctx context.Context, write bool) (kept []ledger.Run, few map[string]bool, err error) {
	// The ledger is read before, for what is sent later has an object, and after, for what was deleted meanwhile is in neither.
	began, _, err := c.runsAndOrphans(ctx)
	if err != nil {
		return nil, nil, err
	}
	there := map[string]bool{}
	err = c.Objects.Each(ctx, c.Namespace, "", func(job *v1alpha1.HTCJob) error {
		there[string(job.UID)] = true
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look which HTCJobs there are: %w", err)
	}
	runs, before, err := c.runsAndOrphans(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]bool{}
	for _, run := range began {
		known[run.UID] = true
	}
	runs = slices.DeleteFunc(runs, func(run ledger.Run) bool { return !known[run.UID] })
	kept, few = sortOrphans(runs, there, before, c.deletions.seen)
	if write {
		if err := c.writeOrphans(ctx, kept, there, before); err != nil {
			return nil, nil, fmt.Errorf("record orphans: %w", err)
		}
	}
	return kept, few, nil
}

func (c *Controller) runsAndOrphans(ctx context.Context) (runs []ledger.Run, orphans map[string]bool, err error) {
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if runs, err = tx.Runs(ledger.RunFilter{Namespace: c.Namespace}); err == nil {
			orphans, err = tx.Orphans()
		}
		return err
	})
	return runs, orphans, err
}

// sortOrphans tells the HTCJobs without an object of which nothing may be removed, by their newest run, from those that are few.
func sortOrphans(runs []ledger.Run, there, before map[string]bool, deleted func(key, uid string) bool) (kept []ledger.Run, few map[string]bool) {
	newest := map[string]int{}
	for i, run := range runs {
		if run.State != ledger.Refused {
			newest[run.UID] = i
		}
	}
	var gone []ledger.Run
	for i, run := range runs {
		remove, known := before[run.UID]
		switch {
		case newest[run.UID] != i || run.State == ledger.Refused || there[run.UID] || remove || deleted(run.Namespace+"/"+run.Name, run.UID):
		case known:
			kept = append(kept, run)
		default:
			gone = append(gone, run)
		}
	}
	if n := len(gone) + len(kept); n > fewOrphans && n > len(newest)/orphanShare {
		return append(kept, gone...), nil
	}
	few = map[string]bool{}
	for _, run := range gone {
		few[run.UID] = true
	}
	return kept, few
}

func (c *Controller) writeOrphans(ctx context.Context, kept []ledger.Run, there, before map[string]bool) error {
	var fresh, back []string
	for _, run := range kept {
		if _, known := before[run.UID]; !known {
			fresh = append(fresh, run.UID)
		}
	}
	for uid := range before {
		if there[uid] {
			back = append(back, uid)
		}
	}
	if len(fresh)+len(back) == 0 {
		return nil
	}
	if len(fresh) > 0 {
		c.Log.Error().Int("htcjobs", len(kept)).Str("such as", kept[0].Namespace+"/"+kept[0].Name).
			Msg("many HTCJobs have vanished without having been deleted: their jobs and output are kept until htcd reconcile --once --remove-orphans")
	}
	return c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		for _, uid := range fresh {
			if _, err := tx.LatestRun(uid); errors.Is(err, ledger.ErrNotFound) {
				continue
			} else if err != nil {
				return err
			}
			if err := tx.KeepOrphan(uid); err != nil {
				return err
			}
		}
		for _, uid := range back {
			if err := tx.ForgetOrphan(uid); err != nil {
				return err
			}
		}
		return nil
	})
}

// reconcileOrphans shows what is kept, and lets it be removed when somebody has said so.
func (c *Controller) reconcileOrphans(ctx context.Context, o ReconcileOptions, found func(crosscheck.Difference)) error {
	kept, _, err := c.keepOrphans(ctx, !o.DryRun)
	if err != nil {
		return err
	}
	kept = slices.DeleteFunc(kept, func(run ledger.Run) bool {
		return o.Namespace != "" && run.Namespace != o.Namespace || o.Name != "" && run.Name != o.Name
	})
	remove := o.RemoveOrphans && !o.DryRun
	if remove {
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			for _, run := range kept {
				if err := tx.RemoveOrphan(run.UID); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, run := range kept {
			c.queue.Add(run.Namespace + "/" + run.Name)
		}
		c.retryNow(func(t blocker) bool { return t.reason == reasonOrphansKept })
	}
	for _, run := range kept {
		d := crosscheck.Difference{Namespace: run.Namespace, Name: run.Name, JobID: fmt.Sprint(run.Cluster), Was: string(run.State), Is: "Orphan", Repaired: remove,
			Evidence: "its object vanished together with many others and was not deleted; jobs and output are kept until --remove-orphans"}
		if remove {
			d.Evidence = "its object vanished together with many others; the htcd that works removes its jobs and output"
		}
		found(d)
	}
	return nil
}

// deletions remembers which HTCJobs were deleted, or could be without anybody's leave. Safe for concurrent use.
type deletions struct {
	mu sync.Mutex
	m  map[string][]string // UIDs by key
}

// note takes what the informer says of an object that is no longer there.
func (d *deletions) note(object any) {
	tombstone, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = tombstone.Obj
	}
	job, is := object.(*v1alpha1.HTCJob)
	if !is || !wasDeleted(job, missed) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.m == nil {
		d.m = map[string][]string{}
	}
	key := job.Namespace + "/" + job.Name
	d.m[key] = append(d.m[key], string(job.UID))
}

// wasDeleted reports whether an object that was last seen so was deleted by somebody. One with our finalizer does not go at once.
func wasDeleted(last *v1alpha1.HTCJob, missed bool) bool {
	return last.DeletionTimestamp != nil || !missed && !slices.Contains(last.Finalizers, v1alpha1.Finalizer)
}

func (d *deletions) seen(key, uid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.m[key], uid)
}

// forget is for a key of which the ledger has nothing any more.
func (d *deletions) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.m, key)
}
