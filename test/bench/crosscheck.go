package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// procsPerJob is how many procs each HTCJob of the cross-check has.
const procsPerJob = 100

// known makes n procs in HTCJobs of 100 that are in the schedd's queue and open in the ledger, and an htcd that checks
// every period. The first pass is over when it returns.
func (p *place) known(ctx context.Context, n int, period string, flags ...string) (*daemon, []int, error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, nil, err
	}
	jobs, err := p.create(ctx, p.ours, "known", n/procsPerJob, procsPerJob)
	if err != nil {
		return nil, nil, err
	}
	clusters, err := p.inQueue(ctx, jobs, procsPerJob)
	if err != nil {
		return nil, nil, err
	}
	if err := p.fill(
		ctx,
		data,
		jobs,
		filling{cluster: func(i int) int { return clusters[i] }, procs: procsPerJob},
	); err != nil {
		return nil, nil, err
	}
	flags = append(flags, "--namespace", p.ours, "--reconcile-schedule=@every "+period, "--refresh=1000h")
	d, err := p.startHtcd(ctx, data, flags...)
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.pass(ctx, 0); err != nil {
		return nil, nil, errors.Join(err, d.stop())
	}
	if err := p.told(
		ctx,
		p.ours,
		len(jobs),
		func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == procsPerJob },
	); err != nil {
		return nil, nil, errors.Join(err, d.stop())
	}
	return d, clusters, nil
}

// crosscheck measures a pass over n open procs of which 1 % has changed since the one before, 15 seconds earlier. It
// asks for what has changed in the minute before that one, too, so for up to 3 %. The floor is one condor_q for all of
// them between two passes. All that is measured without and with a feed.
func crosscheck(ctx context.Context, p *place, n int) ([]figure, error) {
	return p.bothWays(ctx, func(how string, flags []string) ([]figure, error) {
		return p.crosscheck(ctx, n, how, flags)
	})
}

func (p *place) crosscheck(ctx context.Context, n int, how string, flags []string) (figures []figure, err error) {
	aim := "0.2x"
	if len(flags) > 0 {
		aim = "0.05x"
	}
	d, _, err := p.known(ctx, n, "15s", flags...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	for range 5 { // for these all procs are new: each asks for the changes since a minute before the one before
		if _, err := d.pass(ctx, d.passed()); err != nil {
			return nil, err
		}
	}
	before, err := d.status("VmRSS")
	if err != nil {
		return nil, err
	}
	if err := d.forgetMaximum(); err != nil {
		return nil, err
	}
	var ours, floor []time.Duration
	done := d.profile("crosscheck", 45)
	for turn := range 3 {
		if _, err := p.as(
			ctx,
			"admin",
			"",
			nil,
			"condor_hold",
			"-constraint",
			fmt.Sprintf("ProcId == %d", turn),
		); err != nil {
			return nil, err
		}
		took, err := d.pass(ctx, d.passed())
		if err != nil {
			return nil, err
		}
		ours = append(ours, took.took)
		if _, err := d.quiet(ctx); err != nil { // the statuses are written
			return nil, err
		}
		raw, err := p.timed(ctx, "admin", "condor_q", "-allusers", "-json", "-attributes", schedd.Projection)
		if err != nil {
			return nil, err
		}
		floor = append(floor, raw)
	}
	done()
	most, err := d.status("VmHWM")
	if err != nil {
		return nil, err
	}
	return []figure{
		{what: "time " + how, ours: median(ours), floor: median(floor), unit: "s", aim: aim, note: "median of 3"},
		{
			what: "memory growth " + how,
			ours: (most - before) / 1e6,
			unit: "MB",
			aim:  "50 MB",
			note: fmt.Sprintf("%.0f MB before", before/1e6),
		},
	}, nil
}

// history measures a pass after n procs have left the queue. The floor asks the schedd for the same part of its
// history.
func history(ctx context.Context, p *place, n int) (figures []figure, err error) {
	var ours, asking, floor []time.Duration
	for range 3 {
		took, asked, raw, err := p.left(ctx, n)
		if err != nil {
			return nil, err
		}
		ours, asking, floor = append(ours, took), append(asking, asked), append(floor, raw...)
		p.tidy(ctx)
	}
	return []figure{{ours: median(ours), floor: median(floor), unit: "s", aim: "1.2x",
		note: fmt.Sprintf(
			"median of 3; for %.2f s of it a condor_q or condor_history ran: for the newest entry, the queue, and the history",
			median(asking),
		)}}, nil
}

// left removes n jobs from the queue and returns how long the next pass takes, how long HTCondor's tools ran during it,
// and how long the same question takes before and after.
func (p *place) left(ctx context.Context, n int) (took, asking time.Duration, raw []time.Duration, err error) {
	d, clusters, err := p.known(ctx, n, "60s")
	if err != nil {
		return 0, 0, nil, err
	}
	defer d.end(&err)
	if _, err := d.pass(ctx, d.passed()); err != nil {
		return 0, 0, nil, err
	}
	passes := d.passed()
	newest, err := p.as(ctx, "admin", "", nil, "condor_history", "-limit", "1", "-af", "ClusterId", "ProcId")
	if err != nil {
		return 0, 0, nil, err
	}
	if err := p.removeAll(ctx); err != nil {
		return 0, 0, nil, err
	}
	args := []string{
		"-name",
		p.schedd,
		"-backwards",
		"-json",
		"-attributes",
		schedd.Projection,
		"-constraint",
		string(condor.ClusterConstraint(clusters...)),
	}
	if id := strings.Fields(newest); len(id) == 2 {
		args = append(args, "-since", id[0]+"."+id[1])
	}
	ask := func() error {
		took, err := p.timed(ctx, "admin", "condor_history", args...)
		raw = append(raw, took)
		return err
	}
	if err := ask(); err != nil {
		return 0, 0, nil, err
	}
	done := d.profile("history", 60)
	before, err := d.asking(ctx)
	if err != nil {
		return 0, 0, nil, err
	}
	if d.passed() != passes {
		return 0, 0, nil, errors.New("the jobs took longer to leave than there is between two passes")
	}
	ours, err := d.pass(ctx, passes)
	if err != nil {
		return 0, 0, nil, err
	}
	after, err := d.asking(ctx)
	if err := errors.Join(err, ask(), ask()); err != nil {
		return 0, 0, nil, err
	}
	done()
	return ours.took, after - before, raw, nil
}

// list returns every HTCJob of a namespace.
func (p *place) list(ctx context.Context, namespace string) (all []v1alpha1.HTCJob, err error) {
	for next := ""; ; {
		list, err := p.jobs.HTCJobs(namespace).List(ctx, metav1.ListOptions{Limit: 500, Continue: next})
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if next = list.Continue; next == "" {
			return all, nil
		}
	}
}
