package scheddtest

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Names of the commands for Fail and Calls.
const (
	HoldIdle    = "HoldIdle"
	ReleaseHeld = "ReleaseHeld"
	SetMaxJobs  = "SetMaxJobs"
)

// Change implements what the changes say.
func (s *Schedd) Change(ctx context.Context, id schedd.Identity, change schedd.Change) (schedd.Outcome, error) {
	switch c := change.(type) {
	case schedd.Remove:
		return schedd.Outcome{}, s.remove(ctx, id, c)
	case schedd.HoldIdle:
		return schedd.Outcome{}, s.holdIdle(ctx, id, c)
	case schedd.ReleaseHeld:
		return schedd.Outcome{}, s.releaseHeld(ctx, id, c)
	case schedd.SetMaxJobs:
		return schedd.Outcome{}, s.setMaxJobs(ctx, c)
	case schedd.SetParallelism:
		return schedd.Outcome{}, s.setParallelism(ctx, c)
	case schedd.StopMaking:
		return s.stopMaking(ctx, c)
	case schedd.Release:
		return s.release(ctx, id, c.Procs)
	}
	return schedd.Outcome{}, fmt.Errorf("%T is beyond this schedd", change)
}

// holdIdle holds the matching idle jobs of the same account, as condor_hold does.
func (s *Schedd) holdIdle(ctx context.Context, id schedd.Identity, c schedd.HoldIdle) error {
	s.pause(c.Where, c.Reason)
	return s.edited(ctx, id, HoldIdle, c.Where, func(j *condor.Job) bool {
		if j.Status != condor.Idle {
			return false
		}
		j.LastStatus, j.Status = j.Status, condor.Held
		j.HoldReasonCode, j.HoldReasonSubCode, j.HoldReason = condor.PoolHoldCode, condor.PoolHoldSubCode, c.Reason+" (by user "+j.Owner+")"
		return true
	})
}

// releaseHeld releases the matching jobs of the same account that holdIdle held.
func (s *Schedd) releaseHeld(ctx context.Context, id schedd.Identity, c schedd.ReleaseHeld) error {
	s.pause(c.Where, "")
	return s.edited(ctx, id, ReleaseHeld, c.Where, func(j *condor.Job) bool {
		if !j.HeldByPool() {
			return false
		}
		j.LastStatus, j.Status = j.Status, condor.Idle
		j.HoldReasonCode, j.HoldReasonSubCode, j.HoldReason = 0, 0, ""
		return true
	})
}

// pause has the matching factories make no jobs for a reason, or go on.
func (s *Schedd) pause(constraint condor.Constraint, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.factories {
		if hit, err := match(f.job, constraint); err == nil && hit {
			f.Paused = reason
		}
	}
}

func (s *Schedd) edited(
	ctx context.Context,
	id schedd.Identity,
	name string,
	constraint condor.Constraint,
	one func(*condor.Job) bool,
) error {
	f := s.call(ctx, name)
	if f.Err != nil && !f.After {
		return f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.queue {
		j := &s.queue[i]
		hit, err := match(*j, constraint)
		if err != nil {
			return err
		}
		if hit && (j.Owner == "" || j.Owner == account(id)) && one(j) {
			j.EnteredCurrentStatus = s.now().Unix()
		}
	}
	return f.Err
}

func (s *Schedd) setMaxJobs(ctx context.Context, c schedd.SetMaxJobs) error {
	f := s.call(ctx, SetMaxJobs)
	if f.Err != nil && !f.After {
		return f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxJobs[c.Cluster] = c.Jobs
	return f.Err
}

// MaxJobs returns what SetMaxJobs made of a DAG's limit, 0 if nothing.
func (s *Schedd) MaxJobs(cluster int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxJobs[cluster]
}

// Err returns the error of a call whose other result does not matter.
func Err[T any](_ T, err error) error { return err }
