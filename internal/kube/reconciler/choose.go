package reconciler

import (
	"context"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
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

// Places returns where runs of an object may be that the ledger has lost; t is where one would be sent now.
func Places(job *v1alpha1.HTCJob, p pool.Pool, t backend.Target) []backend.Target {
	return sending.Places(t, p.Choice(job), job.Status.Schedd)
}

// Everywhere returns where runs of an object may be if the ledger has lost some: where the others are, where its status
// says, and wherever one could be sent now.
func (r *Reconciler[O, S, K]) Everywhere(
	ctx context.Context, object O, runs []ledger.Run,
) (targets []backend.Target, err error) {
	job := r.o.Owned.AsJob(object)
	p, err := r.o.Chooses().Lost(job)
	if err != nil {
		p = pool.Pool{} // without its pool it is looked for where htcd's flags say
	}
	t, _, err := r.o.Choose(ctx, job, p, r.o.Site.Policy)
	if err != nil {
		return nil, err
	}
	targets = backend.Targets(runs)
	for _, t := range Places(job, p, t) {
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// Questioner returns the identity, with the endpoint, used to ask about the runs of a target.
func (s *Shared) Questioner(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	return backend.Questioner(ctx, s.Chooser.Credentials, t)
}
