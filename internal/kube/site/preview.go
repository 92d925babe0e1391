package site

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

// notShown stands for what only the jobs may read.
const notShown = "(not shown)\n"

// Preview returns what would be sent of an HTCJob by a pool, without the content of its credentials, and what holds for
// it then.
func (s Site) Preview(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	p pool.Pool,
	tables inputs.ConfigMaps,
) (submit.Sandbox, *v1alpha1.Effective, error) {
	if err := pool.Check(p.Name, p.Spec, s.PoolRules()); err != nil {
		return submit.Sandbox{}, nil, err
	}
	if from := job.Spec.ItemsFrom; from != nil && from.JobRef != nil {
		return submit.Sandbox{}, nil, fmt.Errorf(
			"spec.itemsFrom: %s is known to htcd alone: put the table into a ConfigMap to see what would be sent",
			from,
		)
	}
	points, err := ReadItems(ctx, job, inputs.Bringer{ConfigMaps: tables})
	if err != nil {
		return submit.Sandbox{}, nil, err
	}
	var credentials []submit.Credential
	for _, credential := range s.CredentialsOf(job, p) {
		credentials = append(credentials, Sent(credential, notShown))
	}
	sandbox, err := s.Render(job, p, 1, points.Each, credentials...)
	return sandbox, p.Effective(sandbox.Requests), err
}
