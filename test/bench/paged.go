package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
)

// largest is the maximum number of jobs of an HTCJob.
const largest = 100_000

// paged measures the memory that passes over n open procs take, in HTCJobs of the largest size: htcd's own, its largest
// condor_q's, and the maximum of both together. The floor is one condor_q for all of them.
func paged(ctx context.Context, p *place, n int) (figures []figure, err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	jobs, err := p.create(ctx, p.ours, "known", n/largest, largest)
	if err != nil {
		return nil, err
	}
	clusters, err := p.inQueue(ctx, jobs, largest)
	if err != nil {
		return nil, err
	}
	if err := p.fill(
		ctx,
		data,
		jobs,
		filling{cluster: func(i int) int { return clusters[i] }, procs: largest},
	); err != nil {
		return nil, err
	}
	whole, err := p.command(ctx, "admin", "", "condor_q", "-allusers", "-json", "-attributes", schedd.Projection)
	if err != nil {
		return nil, err
	}
	if err := whole.Run(); err != nil {
		return nil, err
	}
	floor := float64(whole.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024

	d, err := p.startHtcd(ctx, data, "--namespace", p.ours, "--reconcile-schedule=@every 25s")
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan [2]float64)
	go func() { seen <- d.questioners(watching) }()
	if err := p.told(
		ctx,
		p.ours,
		len(jobs),
		func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == largest },
	); err != nil {
		return nil, err
	}
	stop()
	most := <-seen
	own, err := d.status("VmHWM")
	if err != nil {
		return nil, err
	}
	return []figure{
		{what: "the largest condor_q", ours: most[0] / 1e6, floor: floor / 1e6, unit: "MB"},
		{what: "htcd", ours: own / 1e6, unit: "MB"},
		{what: "both at once", ours: most[1] / 1e6, unit: "MB"},
	}, nil
}

// questioners watches htcd's commands until ctx ends. It returns the largest size of any one of them, and of htcd and
// its commands together.
func (d *daemon) questioners(ctx context.Context) (most [2]float64) {
	for ctx.Err() == nil {
		sum, err := d.status("VmRSS")
		if err != nil {
			return most
		}
		for _, pid := range children(d.cmd.Process.Pid) {
			size := float64(resident(pid))
			most[0], sum = max(most[0], size), sum+size
		}
		most[1] = max(most[1], sum)
		time.Sleep(20 * time.Millisecond)
	}
	return most
}

// children returns the processes that pid has started.
func children(pid int) (found []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		text, _ := os.ReadFile(file) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found = append(found, child)
		}
	}
	return found
}

// resident returns a process's size in bytes; 0 if it has ended.
func resident(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.Atoi(fields[1])
		return pages * os.Getpagesize()
	}
	return 0
}
