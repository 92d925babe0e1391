package reconciler

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// presumed returns an object as pools know it, and the pool that it was sent by, or will be, as far as that is known.
func (r *Reconciler[O, S, K]) presumed(object O) (*v1alpha1.HTCJob, pool.Pool) {
	job := r.o.Owned.AsJob(object)
	return job, r.o.Chooses().Presumed(job)
}

// AccountOf returns the account whose credentials an object is sent with.
func (r *Reconciler[O, S, K]) AccountOf(object O) backend.Account {
	job, p := r.presumed(object)
	return p.Account(job)
}

// NextEndpoint returns where the next run of an object goes, as far as that is known.
func (r *Reconciler[O, S, K]) NextEndpoint(object O) schedd.Endpoint {
	job, p := r.presumed(object)
	if schedds := p.Choice(job); len(schedds) > 0 {
		return r.o.Several.Last(schedds)
	}
	t, err := p.Target(job, r.o.Site.Policy)
	if err != nil || t.Endpoint.Schedd == "" {
		return r.o.Chooser.Usual(t.Namespace)
	}
	return t.Endpoint
}

// dependsOn adds the accounts that open objects depend on, as far as the site allows them. The common one is included
// unless namespaces may have their own accounts: then perhaps none needs it.
func (r *Reconciler[O, S, K]) dependsOn(accounts map[backend.Account]struct{}) {
	if len(r.o.Site.PoolSecrets) == 0 {
		accounts[backend.Account{}] = struct{}{}
	}
	for _, object := range r.All() {
		if r.o.Kind.Ended(object) {
			continue
		}
		job, p := r.presumed(object)
		if t, err := p.Target(job, r.o.Site.Policy); err == nil {
			accounts[t.Account] = struct{}{}
		}
	}
}

// accountsTurned queues every open object of the accounts whose credentials have news.
func (r *Reconciler[O, S, K]) accountsTurned(turned map[backend.Account]bool) {
	r.Wake(func(object O) bool { return !r.o.Kind.Ended(object) && turned[r.AccountOf(object)] })
}

// LostWith reports whether an object with our finalizer may have been sent with a Secret though the ledger does not say
// so: it has forgotten what was sent, by the rows that there are.
func (r *Reconciler[O, S, K]) LostWith(
	tx *ledger.Tx, own secrets.Own, forgotten func(O, []ledger.Run) bool,
) (bool, error) {
	for _, object := range r.All() {
		if object.GetNamespace() != own.Namespace || !slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) ||
			!own.Sends(r.AccountOf(object).Secret) {
			continue
		}
		runs, err := tx.Runs(
			ledger.RunFilter{Kind: r.o.Runs, Namespace: object.GetNamespace(), Name: object.GetName()},
		)
		if err != nil {
			return false, err
		}
		if forgotten(object, ownRuns(object, runs)) {
			return true, nil
		}
	}
	return false, nil
}

// ownRuns drops the runs of older objects of the same name.
func ownRuns(object metav1.Object, runs []ledger.Run) []ledger.Run {
	return slices.DeleteFunc(runs, func(run ledger.Run) bool { return run.UID != string(object.GetUID()) })
}
