package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// burst creates n HTCJobs of one job each that ends at once, so that ends come while others are still being sent, and
// measures from when the ledger has an end to when a watch sees it in the status.
func burst(ctx context.Context, p *place, n int) (figures []figure, err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, "--namespace", p.ours)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if _, err := p.submitOurs(ctx, "warm", 1, 1); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	told := map[string]time.Time{} // by UID
	all := make(chan struct{})
	stop, err := p.follow(ctx, p.ours, func(job *v1alpha1.HTCJob) {
		mu.Lock()
		defer mu.Unlock()
		if _, known := told[string(job.UID)]; known || !job.Status.Phase.Terminal() {
			return
		}
		if told[string(job.UID)] = time.Now(); len(told) == n {
			close(all)
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	before, err := d.starts(ctx)
	if err != nil {
		return nil, err
	}
	began, done := time.Now(), d.profile("burst", 20)
	if _, err := p.create(
		ctx,
		p.ours,
		"burst",
		n,
		1,
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "" },
	); err != nil {
		return nil, err
	}
	select {
	case <-all:
	case <-time.After(time.Hour):
		return nil, errors.New("not all have ended after an hour")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	took := time.Since(began)
	done()
	after, err := d.starts(ctx)
	if err != nil {
		return nil, err
	}
	book, err := sql.Open(
		"sqlite",
		"file:"+filepath.Join(data, "sqlite", "htcjobs.db")+"?mode=ro&_pragma=busy_timeout(10000)",
	)
	if err != nil {
		return nil, err
	}
	defer book.Close()
	ended := map[string]time.Time{}
	if err := ends(ctx, book, ended, func(string) {}); err != nil {
		return nil, err
	}
	var waits []time.Duration
	for uid, at := range ended {
		waits = append(waits, max(told[uid].Sub(at), 0))
	}
	return []figure{
		{what: "from an end to its status, p50", ours: quantile(waits, 0.5), unit: "s"},
		{what: "p99", ours: quantile(waits, 0.99), unit: "s", aim: "1 s"},
		{what: "finished", ours: float64(n) / took.Seconds(), unit: "/s"},
		{what: "programs started", ours: (after - before) / float64(n), unit: "per HTCJob"},
	}, nil
}
