package feed

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Source asks a feed what condor_q and condor_history are asked otherwise. It implements crosscheck.Mirror.
type Source struct {
	*Client
	Jobs    *schedd.Client // From(Client.Ask)
	Differs func(jobs []string)
}

// Queue is schedd.Client's.
func (s Source) Queue(ctx context.Context, id schedd.Identity, constraint string, fn condor.JobFunc) error {
	return s.Jobs.Queue(ctx, id, constraint, fn)
}

// Changed is schedd.Client's.
func (s Source) Changed(
	ctx context.Context,
	id schedd.Identity,
	constraint string,
	p schedd.Period,
	fn condor.JobFunc,
) error {
	return s.Jobs.Changed(ctx, id, constraint, p, fn)
}

// History is schedd.Client's.
func (s Source) History(
	ctx context.Context,
	id schedd.Identity,
	constraint string,
	b schedd.HistoryBounds,
	fn condor.JobFunc,
) error {
	return s.Jobs.History(ctx, id, constraint, b, fn)
}

// Factories returns ErrMirror: the ads of factories, which are clusters' own, are not mirrored, so HTCondor is asked.
func (s Source) Factories(context.Context, schedd.Identity, string, func(schedd.Factory) error) error {
	return fmt.Errorf("%w: it shows no factories", schedd.ErrMirror)
}

// Daemon says which start of the schedd the feed has seen, by the number of its file, which grows at every start.
func (s Source) Daemon(context.Context, schedd.Identity) (schedd.Daemon, error) {
	mark := s.latest()
	return schedd.Daemon{Started: mark.Sequence, QueueBorn: mark.Born}, nil
}

// Held implements crosscheck.Mirror.
func (s Source) Held(born int64, differ []string) {
	if len(differ) > 0 {
		s.Differs(differ)
	}
	s.held(born, differ)
}
