package kueue

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// SentElsewhere reports whether MultiKueue sends an HTCJob to other clusters.
func SentElsewhere(object runtime.Object) bool {
	job, is := object.(*v1alpha1.HTCJob)
	return is && job.Spec.ManagedBy == v1alpha1.MultiKueue
}

// runElsewhere keeps the Workloads of HTCJobs that run in other clusters, which is all that is done for them here,
// until ctx ends.
func (k *Kueue) runElsewhere(ctx context.Context) {
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			k.line.Add(key)
		}
	}
	_, err := k.Elsewhere.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, now any) { add(now) },
		DeleteFunc: func(object any) {
			if gone, is := object.(cache.DeletedFinalStateUnknown); is {
				object = gone.Obj
			}
			if job, is := object.(*v1alpha1.HTCJob); is {
				k.setLeft(job)
				add(job)
			}
		},
	})
	if err != nil {
		k.Log.Error().Err(err).Msg("HTCJobs that run in other clusters are not watched")
		return
	}
	defer context.AfterFunc(ctx, k.line.ShutDown)()
	go k.Elsewhere.RunWithContext(ctx)
	fairqueue.Drain(ctx, k.line, func(ctx context.Context, key string) {
		if err := k.keepElsewhere(ctx, key); err != nil {
			k.line.AddRateLimited(key)
		} else {
			k.line.Forget(key)
		}
	})
}

func (k *Kueue) keepElsewhere(ctx context.Context, key string) error {
	object, is, err := k.Elsewhere.GetStore().GetByKey(key)
	left := k.takeLeft(key)
	switch {
	case err != nil:
		return err
	case !is && left == nil:
		return nil
	case !is:
		if err := k.Keep(ctx, left, lifecycle.Demand{}); err != nil {
			k.setLeft(left)
			return err
		}
		return nil
	}
	job := object.(*v1alpha1.HTCJob)
	if job.DeletionTimestamp != nil {
		return nil
	}
	err = k.Keep(ctx, job, lifecycle.DemandElsewhere(job))
	if err != nil {
		k.Warn(job, lifecycle.ReasonQuotaAwaited, err.Error())
	}
	return err
}

// setLeft notes an HTCJob that is gone, or names no queue any more: its Workload is to go, which gives back the quota
// and takes it back from the other cluster.
func (k *Kueue) setLeft(job *v1alpha1.HTCJob) {
	job = job.DeepCopy()
	delete(job.Labels, QueueLabel)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left == nil {
		k.left = map[string]*v1alpha1.HTCJob{}
	}
	k.left[job.Namespace+"/"+job.Name] = job
}

func (k *Kueue) takeLeft(key string) *v1alpha1.HTCJob {
	k.mu.Lock()
	defer k.mu.Unlock()
	job := k.left[key]
	delete(k.left, key)
	return job
}
