package scheddtest

import (
	"context"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Names of the commands for Fail and Calls.
const (
	Changed = "Changed"
	Daemon  = "Daemon"
)

// Restart makes the schedd say that it was started now, and go on with factories that it has not cleaned up yet.
func (s *Schedd) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = s.now().Unix()
	for _, f := range s.factories {
		if s.there(f) {
			f.removed = time.Time{}
		}
	}
}

// Restore makes the queue what Jobs returned at some time, as after the job_queue.log of that time was put back.
func (s *Schedd) Restore(queue []condor.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.born = queue, setUp
}

// Swap makes the queue another one, which was set up long ago.
func (s *Schedd) Swap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.born = nil, setUp-1
}

// Reset makes the queue an empty one that was set up now.
func (s *Schedd) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.born = nil, s.now().Unix()
}

// Daemon returns when Restart was called last, or New, and Reset.
func (s *Schedd) Daemon(ctx context.Context, _ schedd.Identity) (schedd.Daemon, error) {
	f := s.call(ctx, Daemon)
	s.mu.Lock()
	defer s.mu.Unlock()
	return schedd.Daemon{Started: s.started, QueueBorn: s.born}, f.Err
}

// changed is condor_q for jobs that have changed.
func (s *Schedd) changed(ctx context.Context, constraint condor.Constraint, p schedd.Period, fn condor.JobFunc) error {
	if f := s.call(ctx, Changed); f.Err != nil {
		return f.Err
	}
	now, n := s.now().Unix(), 0
	for _, j := range s.Jobs() {
		hit, err := matchAt(j, "("+p.Constraint()+") && ("+constraint+")", now)
		if err != nil {
			return err
		}
		if !hit {
			continue
		}
		if n++; n > p.Most {
			return schedd.ErrTooMany
		}
		j.Reasoned, j.ServerTime = true, now
		if err := fn(j); err != nil {
			return err
		}
	}
	return nil
}
