package scheddtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// The commands for factories.
const (
	Factories      = "Factories"
	SetParallelism = "SetParallelism"
	StopMaking     = "StopMaking"
)

// factory is one whose launcher was submitted.
type factory struct {
	condor.Factory
	ad   condor.Job
	job  condor.Job // as which it makes jobs
	own  []*int     // their numbers
	most int        // that are there at a time

	removed time.Time // zero: it goes on
}

// cleanup is how long the schedd keeps a factory that was removed and has no jobs.
const cleanup = 5 * time.Second

// launch notes the factory of a launcher whose sandbox is in dir.
func (s *Schedd) launch(cluster int, dir string) error {
	i := slices.IndexFunc(s.queue, func(j condor.Job) bool { return j.Cluster == cluster })
	s.queue[i].Launcher = true
	if _, err := os.Stat(filepath.Join(dir, "nodes.tgz")); err == nil { // its jobs are nodes, for which tests have Put
		return nil
	}
	script, err := os.ReadFile(filepath.Join(dir, "factory.sh")) // #nosec G304 -- for tests only
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "factory.sub")) // #nosec G304 -- for tests only
	if err != nil {
		return err
	}
	n, own := queued(text)
	most := mostLine.FindSubmatch(script)
	if most == nil || n == 0 {
		return fmt.Errorf("%s: no factory with a limit", dir)
	}
	f := &factory{job: s.queue[i], own: own}
	f.ad.Made = n
	if m := poolLine.FindSubmatch(text); m != nil {
		f.job.Tag.Pool = string(m[1])
	}
	f.job.Launcher, f.ad.Tag, f.ad.Owner, f.ad.QDate = false, f.job.Tag, f.job.Owner, f.job.QDate
	f.most, _ = strconv.Atoi(string(most[1]))
	s.factories[cluster] = f
	return nil
}

// HandOver lets a launcher hand its factory over, which makes as many jobs as it may. It returns the factory's cluster.
func (s *Schedd) HandOver(launcher int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.factories[launcher]
	if f == nil {
		panic("there is no such launcher")
	}
	f.ad.Cluster, f.Open = s.next, true
	f.job.Cluster, f.job.Made = s.next, f.ad.Made
	s.next++
	s.make()
	return f.ad.Cluster
}

// PutFactory adds a factory of nodes, which makes none by itself: see Put.
func (s *Schedd) PutFactory(ad condor.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.factories[ad.Cluster] = &factory{Factory: *ad.Factory, ad: ad, job: ad}
}

// make lets the factories make what they may.
func (s *Schedd) make() {
	for _, f := range s.factories {
		there := 0
		for _, j := range s.queue {
			if j.Cluster == f.ad.Cluster {
				there++
			}
		}
		for ; f.Open && f.Paused == "" && f.removed.IsZero() && there < f.most && f.Next < f.ad.Made; there++ {
			f.job.Own = f.own[f.Next]
			f.job.Proc, f.job.EnteredCurrentStatus = f.Next, s.now().Unix()
			f.Next++
			s.queue = append(s.queue, f.job)
		}
	}
}

// made is condor_q -factory: one is there until all of its jobs have left the queue.
func (s *Schedd) made(ctx context.Context, constraint condor.Constraint, fn condor.JobFunc) error {
	if f := s.call(ctx, Factories); f.Err != nil {
		return f.Err
	}
	s.mu.Lock()
	var all []condor.Job
	s.make()
	for _, f := range s.factories {
		hit, err := match(f.job, constraint)
		if err != nil {
			s.mu.Unlock()
			return err
		}
		if hit && s.there(f) {
			now := f.Factory
			f.ad.Factory = &now
			all = append(all, f.ad)
		}
	}
	s.mu.Unlock()
	for _, f := range all {
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schedd) setParallelism(ctx context.Context, c schedd.SetParallelism) error {
	if f := s.call(ctx, SetParallelism); f.Err != nil {
		return f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.factories {
		if f.ad.Cluster == c.Cluster {
			f.most = c.Jobs
			if c.Idle == 0 {
				f.most = 0
			}
		}
	}
	s.make()
	return nil
}

func (s *Schedd) stopMaking(ctx context.Context, c schedd.StopMaking) (schedd.Outcome, error) {
	if f := s.call(ctx, StopMaking); f.Err != nil {
		return schedd.Outcome{}, f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.factories {
		if f.ad.Cluster == c.Cluster && s.there(f) {
			f.most = 0
			return schedd.Outcome{Found: true, Made: f.Next}, nil
		}
	}
	return schedd.Outcome{}, nil
}

// there reports whether a factory is in the queue: until all of its jobs have left it.
func (s *Schedd) there(f *factory) bool {
	goesOn := f.Next < f.ad.Made && (f.removed.IsZero() || s.now().Sub(f.removed) < cleanup)
	return f.Open &&
		(goesOn || slices.ContainsFunc(s.queue, func(j condor.Job) bool { return j.Cluster == f.ad.Cluster }))
}
