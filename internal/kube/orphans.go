package kube

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/sending"
)

// uids returns those of the HTCJobs that the apiserver has.
func (c *Controller) uids(ctx context.Context) (map[string]bool, error) {
	there := map[string]bool{}
	err := c.Objects.Each(ctx, c.Namespace, "", func(job *v1alpha1.HTCJob) error {
		there[string(job.UID)] = true
		return nil
	})
	return there, err
}

func (c *Controller) manyVanished(n int, such ledger.Run) {
	c.Log.Error().Int("htcjobs", n).Str("such as", such.Namespace+"/"+such.Name).
		Msg("many HTCJobs have vanished without having been deleted: their jobs and output are kept until htcd reconcile --once --remove-orphans")
}

// reconcileOrphans lists the orphans that are kept, and releases them for removal if that was requested.
func (c *Controller) reconcileOrphans(ctx context.Context, o ReconcileOptions, found func(crosscheck.Difference)) error {
	kept, err := c.orphans.Find(ctx, !o.DryRun)
	if err != nil {
		return err
	}
	kept = slices.DeleteFunc(kept, func(run ledger.Run) bool {
		return o.Namespace != "" && run.Namespace != o.Namespace || o.Name != "" && run.Name != o.Name
	})
	remove := o.RemoveOrphans && !o.DryRun
	if remove {
		if err := c.orphans.Release(ctx, kept); err != nil {
			return err
		}
		for _, run := range kept {
			c.queue.Add(run.Namespace + "/" + run.Name)
		}
		c.retryNow(func(t blocker) bool { return t.Reason == sending.ReasonOrphansKept })
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

// deleted reports whether an object that the informer no longer has was deleted by somebody, or could have been without
// htcd's consent. One with our finalizer does not disappear at once.
func deleted(object any) (job *v1alpha1.HTCJob, was bool) {
	tombstone, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = tombstone.Obj
	}
	job, is := object.(*v1alpha1.HTCJob)
	return job, is && (job.DeletionTimestamp != nil || !missed && !slices.Contains(job.Finalizers, v1alpha1.Finalizer))
}
