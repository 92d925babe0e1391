package pool

import (
	"cmp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Schedds lists those of the pool; none: the usual one.
func (p Pool) Schedds() []string {
	var all []string
	if p.Spec.Schedd != "" {
		all = append(all, string(p.Spec.Schedd))
	}
	for _, name := range p.Spec.Schedds {
		all = append(all, string(name))
	}
	return all
}

// Choice lists the schedds of which one is to be chosen for an HTCJob; none if it names one, or there is only one.
func (p Pool) Choice(job *v1alpha1.HTCJob) []string {
	all := p.Schedds()
	if len(all) < 2 || job.Spec.Pool != nil && job.Spec.Pool.Schedd != "" {
		return nil
	}
	return all
}

// Account returns the account that an HTCJob is sent with.
func (p Pool) Account(job *v1alpha1.HTCJob) backend.Account {
	a := backend.Account{Namespace: job.Namespace}
	if job.Spec.Pool != nil {
		a.Secret = job.Spec.Pool.SecretName
	}
	switch own := p.Spec.Account; {
	case own == nil:
	case own.From == v1alpha1.AccountCommon:
		return backend.Account{}
	case own.SecretName != "":
		a.Secret = own.SecretName
	}
	return a
}

// Target returns where an HTCJob goes that is sent by the pool, and as whom; without a schedd it means the usual one,
// or that one of the pool's several schedds is to be chosen. Its errors are of kind schedd.Refused.
func (p Pool) Target(job *v1alpha1.HTCJob, policy backend.Policy) (backend.Target, error) {
	var wish v1alpha1.Pool
	if job.Spec.Pool != nil {
		wish = *job.Spec.Pool
	}
	t := backend.Target{
		Account:  p.Account(job),
		Endpoint: schedd.Endpoint{Collector: wish.Collector, Schedd: wish.Schedd},
	}
	if own := p.Spec.Account; own != nil && wish.SecretName != "" {
		if own.From == v1alpha1.AccountCommon {
			return t, condor.Refusal(
				"spec.pool.secretName: HTCPool %s sends all jobs as htcd's own account: leave it out",
				p.Name,
			)
		}
		if own.SecretName != "" && own.SecretName != wish.SecretName {
			return t, condor.Refusal(
				"spec.pool.secretName: HTCPool %s sends all jobs with the Secret %s: leave it out",
				p.Name,
				own.SecretName,
			)
		}
	}
	schedds := p.Schedds()
	if len(schedds) == 0 {
		return policy.Target(t)
	}
	if wish.Schedd != "" && !slices.Contains(schedds, wish.Schedd) {
		return t, condor.Refusal(
			"spec.pool.schedd: HTCPool %s has no schedd %s, but %s: write one of these, or leave it out",
			p.Name,
			wish.Schedd,
			strings.Join(schedds, ", "),
		)
	}
	if wish.Collector != "" && wish.Collector != cmp.Or(p.Spec.Collector, policy.Collector) {
		return t, condor.Refusal("spec.pool.collector: it is not the one of HTCPool %s: leave it out", p.Name)
	}
	t.Endpoint.Collector = p.Spec.Collector
	if t.Endpoint.Schedd == "" && len(schedds) == 1 {
		t.Endpoint.Schedd = schedds[0]
	}
	return policy.Own(t)
}
