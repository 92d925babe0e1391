package scheddtest

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Names of the commands for Fail and Calls.
const (
	HoldIdle    = "HoldIdle"
	ReleaseHeld = "ReleaseHeld"
	SetMaxJobs  = "SetMaxJobs"
)

// HoldIdle holds the matching idle jobs of the same account, as condor_hold does.
func (s *Schedd) HoldIdle(ctx context.Context, id schedd.Identity, constraint, reason string) error {
	s.pause(constraint, reason)
	return s.change(ctx, id, HoldIdle, constraint, func(j *condor.Job) bool {
		if j.Status != condor.Idle {
			return false
		}
		j.LastStatus, j.Status = j.Status, condor.Held
		j.HoldReasonCode, j.HoldReasonSubCode, j.HoldReason = condor.PoolHoldCode, condor.PoolHoldSubCode, reason+" (by user "+j.Owner+")"
		return true
	})
}

// ReleaseHeld releases the matching jobs of the same account that HoldIdle held.
func (s *Schedd) ReleaseHeld(ctx context.Context, id schedd.Identity, constraint, _ string) error {
	s.pause(constraint, "")
	return s.change(ctx, id, ReleaseHeld, constraint, func(j *condor.Job) bool {
		if !j.HeldByPool() {
			return false
		}
		j.LastStatus, j.Status = j.Status, condor.Idle
		j.HoldReasonCode, j.HoldReasonSubCode, j.HoldReason = 0, 0, ""
		return true
	})
}

// pause has the matching factories make no jobs for a reason, or go on.
func (s *Schedd) pause(constraint, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.factories {
		if hit, err := match(f.job, constraint); err == nil && hit {
			f.Paused = reason
		}
	}
}

func (s *Schedd) change(
	ctx context.Context,
	id schedd.Identity,
	name, constraint string,
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

// SetMaxJobs notes how many nodes of a DAG may be in the queue.
func (s *Schedd) SetMaxJobs(ctx context.Context, _ schedd.Identity, _ condor.Tag, cluster, n int) error {
	f := s.call(ctx, SetMaxJobs)
	if f.Err != nil && !f.After {
		return f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxJobs[cluster] = n
	return f.Err
}

// MaxJobs returns what SetMaxJobs made of a DAG's limit, 0 if nothing.
func (s *Schedd) MaxJobs(cluster int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxJobs[cluster]
}
