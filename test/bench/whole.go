package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// whole takes one HTCJob of n jobs, which never start, through its life: its submission beside one condor_submit
// -spool; its end, when somebody removes all jobs from the queue, and its deletion, together beside how long the schedd
// alone needs to remove as many; and how much memory htcd had at most.
func whole(ctx context.Context, p *place, n int) (figures []figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	d, err := p.working(ctx)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	sent, err := p.submitOurs(ctx, "whole", 1, n)
	if err != nil {
		return nil, err
	}
	const name = "whole-00000"
	job, err := p.untilJob(ctx, name, "idle", func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == int32(n) })
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err := p.as(ctx, "admin", "", nil, "condor_rm", fmt.Sprint(job.Status.ClusterID)); err != nil {
		return nil, err
	}
	if _, err := p.untilJob(ctx, name, "removed", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Phase == v1alpha1.PhaseRemoved && job.Status.Failed == int32(n) && job.Status.Active == 0
	}); err != nil {
		return nil, err
	}
	over := time.Since(began)
	began = time.Now()
	jobs := p.jobs.HTCJobs(p.ours)
	if err := jobs.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	for {
		if _, err := jobs.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	gone := time.Since(began)
	peak, err := d.status("VmHWM")
	if err != nil {
		return nil, err
	}
	dirs, err := p.stage(1, n)
	if err != nil {
		return nil, err
	}
	raw, err := p.submitRaw(ctx, dirs, 1) // the queue is as empty as it was for ours
	if err != nil {
		return nil, err
	}
	began = time.Now()
	err = p.removeAll(ctx)
	removed := time.Since(began)
	return []figure{
		{what: "submission", ours: sent.Seconds(), floor: raw.Seconds(), unit: "s", aim: "1.05x"},
		{what: "from condor_rm to its end", ours: over.Seconds(), unit: "s", aim: "measured"},
		{what: "deletion", ours: gone.Seconds(), unit: "s", aim: "60 s"},
		{what: "both", ours: (over + gone).Seconds(), floor: removed.Seconds(), unit: "s", aim: "measured"},
		{what: "htcd at most", ours: peak / 1e6, unit: "MB", aim: "150 MB"},
	}, err
}
