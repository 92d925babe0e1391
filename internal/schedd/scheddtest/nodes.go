package scheddtest

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
)

// SetMaxJobs notes what DAGMan is told, by cluster, in MaxJobs.
func (s *Schedd) SetMaxJobs(ctx context.Context, _ schedd.Identity, _ schedd.Tag, cluster, n int) error {
	if err := s.call(ctx, "condor_qedit").Err; err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxJobs = append(s.maxJobs, [2]int{cluster, n})
	return nil
}

// MaxJobs returns the clusters and numbers that SetMaxJobs was called with.
func (s *Schedd) MaxJobs() [][2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxJobs
}
