package scheddtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

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
	schedd.Factory
	job  condor.Job // as which it makes jobs
	own  []*int     // their numbers
	most int        // that are there at a time
}

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
	f.All = n
	if m := poolLine.FindSubmatch(text); m != nil {
		f.job.Tag.Pool = string(m[1])
	}
	f.job.Launcher, f.Tag, f.Owner, f.QDate = false, f.job.Tag, f.job.Owner, f.job.QDate
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
	f.Cluster, f.Open = s.next, true
	f.job.Cluster, f.job.Made = s.next, f.All
	s.next++
	s.make()
	return f.Cluster
}

// PutFactory adds a factory of nodes, which makes none by itself: see Put.
func (s *Schedd) PutFactory(f schedd.Factory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.factories[f.Cluster] = &factory{Factory: f, job: condor.Job{Cluster: f.Cluster, Owner: f.Owner, Node: f.Node, Made: f.All}}
}

// make lets the factories make what they may.
func (s *Schedd) make() {
	for _, f := range s.factories {
		there := 0
		for _, j := range s.queue {
			if j.Cluster == f.Cluster {
				there++
			}
		}
		for ; f.Open && f.Paused == "" && there < f.most && f.Next < f.All; there++ {
			f.job.Own = f.own[f.Next]
			f.job.Proc, f.job.EnteredCurrentStatus = f.Next, s.now().Unix()
			f.Next++
			s.queue = append(s.queue, f.job)
		}
	}
}

// Factories implements condor_q -factory: one is there until all of its jobs have left the queue.
func (s *Schedd) Factories(
	ctx context.Context,
	_ schedd.Identity,
	constraint string,
	fn func(schedd.Factory) error,
) error {
	if f := s.call(ctx, Factories); f.Err != nil {
		return f.Err
	}
	s.mu.Lock()
	var all []schedd.Factory
	s.make()
	for _, f := range s.factories {
		hit, err := match(f.job, constraint)
		if err != nil {
			s.mu.Unlock()
			return err
		}
		if hit && s.there(f) {
			all = append(all, f.Factory)
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

// SetParallelism changes how many jobs of a factory are there at a time.
func (s *Schedd) SetParallelism(ctx context.Context, _ schedd.Identity, _ condor.Tag, cluster, n, _ int) error {
	if f := s.call(ctx, SetParallelism); f.Err != nil {
		return f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.factories {
		if f.Cluster == cluster {
			f.most = n
		}
	}
	s.make()
	return nil
}

// StopMaking has a factory make no more jobs.
func (s *Schedd) StopMaking(ctx context.Context, _ schedd.Identity, _ condor.Tag, cluster int) (int, bool, error) {
	if f := s.call(ctx, StopMaking); f.Err != nil {
		return 0, false, f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.factories {
		if f.Cluster == cluster && s.there(f) {
			f.most = 0
			return f.Next, true, nil
		}
	}
	return 0, false, nil
}

// there reports whether a factory is in the queue: until all of its jobs have left it.
func (s *Schedd) there(f *factory) bool {
	return f.Open &&
		(f.Next < f.All || slices.ContainsFunc(s.queue, func(j condor.Job) bool { return j.Cluster == f.Cluster }))
}
