package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// states measures from a change of a job in HTCondor to its status, without and with a feed: n jobs each are held,
// released, removed, run and evicted, one of each a second; then 5n are held and released together.
func states(ctx context.Context, p *place, n int) ([]figure, error) {
	return p.bothWays(ctx, func(how string, flags []string) ([]figure, error) {
		return p.states(ctx, n, how, flags)
	})
}

// clusterThatRuns begins when it is released, writes when into a file named after it, and does not begin again.
const clusterThatRuns = "executable = /bin/sh\ntransfer_executable = false\nhold = true\n" +
	"requirements = (NumShadowStarts ?: 0) == 0\n" +
	"arguments = \"-c 'date +%%s.%%N > %s/$(ClusterId).new; mv %s/$(ClusterId).new %s/$(ClusterId); exec sleep 1000'\"\n"

func (p *place) states(ctx context.Context, n int, how string, flags []string) (figures []figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	began, err := p.dir("robot", "began")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(began, 0o777); err != nil {
		return nil, err
	}
	jobs, err := p.create(ctx, p.ours, "state", 8*n, 1)
	if err != nil {
		return nil, err
	}
	held, removed, run, many := jobs[:n], jobs[n:2*n], jobs[2*n:3*n], jobs[3*n:]
	waiting, err := p.inQueue(ctx, append(held[:2*n:2*n], many...), 1)
	if err != nil {
		return nil, err
	}
	running, err := p.inQueueAs(ctx, run, 1, fmt.Sprintf(clusterThatRuns, began, began, began))
	if err != nil {
		return nil, err
	}
	clusters := append(append(waiting[:2*n:2*n], running...), waiting[2*n:]...)
	if err := p.fill(ctx, data, jobs, filling{cluster: func(i int) int { return clusters[i] }, procs: 1}); err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, append(flags, "--namespace", p.ours)...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if err := d.settled(ctx, len(jobs)); err != nil {
		return nil, err
	}
	seen := &phases{at: map[string]time.Time{}, news: make(chan struct{})}
	stop, err := p.follow(ctx, p.ours, seen.see)
	if err != nil {
		return nil, err
	}
	defer stop()

	var mu sync.Mutex
	tell := func(what string, waits []time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		figures = append(figures,
			figure{what: what + " " + how + ", p50", ours: quantile(waits, 0.5), unit: "s", aim: "0.05 s"},
			figure{what: what + " " + how + ", p99", ours: quantile(waits, 0.99), unit: "s", aim: "1 s"})
	}
	// one changes one job a second and waits until all statuses tell.
	one := func(what string, tool string, jobs []*v1alpha1.HTCJob, clusters []int, phase v1alpha1.Phase) error {
		at := make([]time.Time, len(jobs))
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i, cluster := range clusters {
			at[i] = time.Now()
			if _, err := p.as(ctx, "admin", "", nil, tool, strconv.Itoa(cluster)); err != nil {
				return err
			}
			<-tick.C
		}
		waits, err := seen.after(ctx, at[0], jobs, at, phase)
		if err == nil {
			tell(what, waits)
		}
		return err
	}
	var group errgroup.Group
	group.Go(func() error {
		return errors.Join(one("held", "condor_hold", held, clusters[:n], v1alpha1.PhaseHeld),
			one("released", "condor_release", held, clusters[:n], v1alpha1.PhaseIdle))
	})
	group.Go(func() error {
		return one("removed", "condor_rm", removed, clusters[n:2*n], v1alpha1.PhaseRemoved)
	})
	group.Go(func() error {
		released := time.Now()
		if _, err := p.as(ctx, "admin", "", nil, "condor_release", words(running)...); err != nil {
			return err
		}
		at, err := startsOf(ctx, began, running)
		if err != nil {
			return err
		}
		waits, err := seen.after(ctx, released, run, at, v1alpha1.PhaseRunning)
		if err != nil {
			return err
		}
		tell("running", waits)
		return one("evicted", "condor_vacate_job", run, running, v1alpha1.PhaseIdle)
	})
	if err := group.Wait(); err != nil {
		return figures, err
	}
	for _, c := range []struct {
		what, tool string
		phase      v1alpha1.Phase
	}{{"held together", "condor_hold", v1alpha1.PhaseHeld}, {"released together", "condor_release", v1alpha1.PhaseIdle}} {
		at := make([]time.Time, len(many))
		for i := range at {
			at[i] = time.Now()
		}
		if _, err := p.as(ctx, "admin", "", nil, c.tool, words(clusters[3*n:])...); err != nil {
			return figures, err
		}
		waits, err := seen.after(ctx, at[0], many, at, c.phase)
		if err != nil {
			return figures, err
		}
		tell(c.what, waits)
	}
	return figures, nil
}

// words are cluster numbers as arguments.
func words(clusters []int) (args []string) {
	for _, cluster := range clusters {
		args = append(args, strconv.Itoa(cluster))
	}
	return args
}

// startsOf waits until jobs run, and returns when each began.
func startsOf(ctx context.Context, dir string, clusters []int) (at []time.Time, err error) {
	for _, cluster := range clusters {
		var text []byte
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
			var err error
			text, err = os.ReadFile(filepath.Join(dir, strconv.Itoa(cluster)))
			return err == nil, nil
		})
		if err != nil {
			return nil, err
		}
		seconds, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil {
			return nil, err
		}
		at = append(at, time.UnixMicro(int64(seconds*1e6)))
	}
	return at, nil
}

// phases notes when the statuses of HTCJobs first told each phase after another.
type phases struct {
	mu   sync.Mutex
	now  sync.Map // the phase of each, by name
	at   map[string]time.Time
	news chan struct{}
}

func (s *phases) see(job *v1alpha1.HTCJob) {
	if was, _ := s.now.Swap(job.Name, job.Status.Phase); was == job.Status.Phase {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[job.Name+" "+string(job.Status.Phase)] = time.Now()
	close(s.news)
	s.news = make(chan struct{})
}

// after waits until each HTCJob has told a phase after a time, and returns how long after a time of its own that was: 0
// if it was before, as HTCondor calls a job running a little before it begins.
func (s *phases) after(
	ctx context.Context, from time.Time, jobs []*v1alpha1.HTCJob, at []time.Time, phase v1alpha1.Phase,
) (waits []time.Duration, err error) {
	for i, job := range jobs {
		for {
			s.mu.Lock()
			told, news := s.at[job.Name+" "+string(phase)], s.news
			s.mu.Unlock()
			if told.After(from) {
				waits = append(waits, max(told.Sub(at[i]), 0))
				break
			}
			select {
			case <-news:
			case <-ctx.Done():
				return nil, fmt.Errorf("%s is not %s: %w", job.Name, phase, ctx.Err())
			}
		}
	}
	return waits, nil
}
