package reconciler

import (
	"context"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Choose returns where a run that begins now goes, and the identity it is sent with; the HTCJob has what pools know of
// the object.
func (s *Shared) Choose(
	ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool, policy backend.Policy,
) (backend.Target, schedd.Identity, error) {
	t, err := p.Target(job, policy)
	if err != nil {
		return t, schedd.Identity{}, err
	}
	if schedds := p.Choice(job); len(schedds) > 0 {
		return s.Several.Choose(ctx, t, schedds, job.Jobs())
	}
	return s.Chooser.Choose(ctx, t)
}

// Questioner returns the identity, with the endpoint, used to ask about the runs of a target.
func (s *Shared) Questioner(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	return backend.Questioner(ctx, s.Chooser.Credentials, t)
}
