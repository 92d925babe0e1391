package feed

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Source asks a feed what condor_q and condor_history are asked otherwise. It implements crosscheck.Mirror.
type Source struct {
	*Client
	Jobs    *schedd.Client // From(Client.Ask)
	Differs func(jobs []string)
}

// Query is schedd.Client's.
func (s Source) Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error {
	return s.Jobs.Query(ctx, id, q, fn)
}

// Daemon says which start of the schedd the feed has seen, by the number of its file, which grows at every start.
func (s Source) Daemon(context.Context, schedd.Identity) (schedd.Daemon, error) {
	mark := s.latest()
	return schedd.Daemon{Started: mark.Sequence, QueueBorn: mark.Born}, nil
}

// Held implements crosscheck.Mirror.
func (s Source) Held(whose string, born int64, differ []string) {
	if len(differ) > 0 {
		s.Differs(differ)
	}
	s.held(whose, born, differ)
}
