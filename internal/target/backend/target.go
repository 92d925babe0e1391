package backend

import (
	"cmp"
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Target is where a run is in HTCondor and whose it is. It is written to the ledger with the intent: every later
// question about the run goes there as that account, whatever the flags or the site's command then say.
type Target struct {
	Endpoint schedd.Endpoint
	Account
}

// Account says whose credentials are used: those of a Secret in the namespace, or if none is named, the namespace's
// usual ones. The account without a namespace is the common one.
type Account struct{ Namespace, Secret string }

// commonSecret in a run's row stands for the common account, whatever account its namespace has. No Secret has such a
// name.
const commonSecret = "-"

// TargetOf returns the target in a run's row.
func TargetOf(run ledger.Run) Target {
	t := Target{schedd.Endpoint{Collector: run.Collector, Schedd: run.Schedd}, Account{run.Namespace, run.Secret}}
	if run.Secret == commonSecret {
		t.Account = Account{}
	}
	return t
}

// Of returns the run's row with this target.
func (t Target) Of(run ledger.Run) ledger.Run {
	run.Collector, run.Schedd, run.Secret = t.Endpoint.Collector, t.Endpoint.Schedd, t.Secret
	if t.Account == (Account{}) {
		run.Secret = commonSecret
	}
	return run
}

// Shared returns the target under which runs are asked about together. The schedd shows everybody's jobs to everybody,
// so runs with their namespace's usual account share one; runs that named a Secret are asked about with it.
func (t Target) Shared() Target {
	if t.Secret == "" {
		t.Namespace = ""
	}
	return t
}

// Targets lists the targets of the runs that may have been sent.
func Targets(runs []ledger.Run) []Target {
	var targets []Target
	for _, run := range runs {
		if t := TargetOf(run); run.State != ledger.Refused && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets
}

// Group holds the runs that are asked about together: at one schedd, with one account.
type Group struct {
	Target // as Shared returns it
	Runs   []ledger.Run
}

// Groups groups runs by their shared target.
func Groups(runs []ledger.Run) []Group {
	sorted := map[Target]*Group{}
	for _, run := range runs {
		t := TargetOf(run).Shared()
		if sorted[t] == nil {
			sorted[t] = &Group{Target: t}
		}
		sorted[t].Runs = append(sorted[t].Runs, run)
	}
	all := make([]Group, 0, len(sorted))
	for _, g := range sorted {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(
			cmp.Compare(a.Endpoint.Collector, b.Endpoint.Collector),
			cmp.Compare(a.Endpoint.Schedd, b.Endpoint.Schedd),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Secret, b.Secret),
		)
	})
	return all
}
