package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// untilJob waits until an HTCJob of ours is as wanted.
func (p *place) untilJob(
	ctx context.Context,
	name, what string,
	is func(*v1alpha1.HTCJob) bool,
) (*v1alpha1.HTCJob, error) {
	there := make(chan *v1alpha1.HTCJob, 1)
	stop, err := p.follow(ctx, p.ours, func(job *v1alpha1.HTCJob) {
		if job.Name == name && is(job) {
			select {
			case there <- job.DeepCopy():
			default:
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	select {
	case job := <-there:
		return job, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s is not %s: %w", name, what, ctx.Err())
	}
}

// outputs compares how long htcd takes to fetch the output of n jobs that have ended, 100 KB each, with
// condor_transfer_data of the same jobs, each into a directory of its own. An htcd that may use no space waits for
// their end.
func outputs(ctx context.Context, p *place, n int) (figures []figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Hour)
	defer cancel()
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, "--namespace", p.ours, "--keep-free=1Pi")
	if err != nil {
		return nil, err
	}
	job := htcjob("output", n)
	job.Spec.HTCOpts, job.Spec.Script.Source = "", "head -c 100000 /dev/urandom > result\n"
	if _, err := p.jobs.HTCJobs(p.ours).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	job, err = p.untilJob(
		ctx,
		job.Name,
		"at its end",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Phase.Terminal() },
	)
	if err = errors.Join(err, d.stop()); err != nil {
		return nil, err
	}
	if job.Status.Phase != v1alpha1.PhaseSucceeded {
		return nil, fmt.Errorf("it is %s: %s", job.Status.Phase, job.Status.Message)
	}
	raw, err := p.transferRaw(ctx, int(job.Status.ClusterID), n)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	d, err = p.startHtcd(ctx, data, "--namespace", p.ours)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	ready := time.Since(began)
	_, err = p.untilJob(ctx, job.Name, "fetched", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	})
	took := time.Since(began) - ready
	return []figure{
		{
			ours:  took.Seconds(),
			floor: raw.Seconds(),
			unit:  "s",
			aim:   "1.2x",
			note:  "from readiness to the condition OutputFetched; one condor_transfer_data",
		},
	}, err
}

// transferRaw fetches the output of a cluster as its account, by hand.
func (p *place) transferRaw(ctx context.Context, cluster, n int) (time.Duration, error) {
	root, err := p.dir("robot", "raw")
	if err != nil {
		return 0, err
	}
	for i := range n {
		if err := os.Mkdir(filepath.Join(root, fmt.Sprint(i)), 0o755); err != nil {
			return 0, err
		}
	}
	if err := p.give("robot", root); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := p.as(
		ctx,
		"robot",
		root,
		nil,
		"condor_qedit",
		fmt.Sprint(cluster),
		"SUBMIT_Iwd",
		fmt.Sprintf(`strcat("%s/", ProcId)`, root),
	); err != nil {
		return 0, err
	}
	if _, err := p.as(ctx, "robot", root, nil, "condor_transfer_data", fmt.Sprint(cluster)); err != nil {
		return 0, err
	}
	took := time.Since(began)
	for i := range n {
		if info, err := os.Stat(filepath.Join(root, fmt.Sprint(i), "result")); err != nil || info.Size() != 100_000 {
			left, _ := os.ReadDir(filepath.Join(root, fmt.Sprint(i)))
			return 0, fmt.Errorf(
				"the output of job %d is not there (%v): %s",
				i,
				err,
				strings.Trim(fmt.Sprint(left), "[]"),
			)
		}
	}
	return took, nil
}
