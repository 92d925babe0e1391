package reconciler

import (
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify/traces"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/matching"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Common are the parts that the controllers of all kinds have.
type Common struct {
	*Shared
	Site        *site.Site
	Namespace   string         // the one whose objects are watched; empty: all
	Staging     string         // has a subdirectory for every run
	Staged      *output.Shares // of the volume of Staging
	Shares      *output.Shares // of the volume of the output
	Workers     int            // objects synced in parallel
	Actors      int            // actions in parallel, for each class at each schedd
	Pools       pool.Known     // nil: there are no HTCPools
	Ledger      Ledger
	Credentials backend.Credentials
	Quota       Quota           // nil: there is none outside of htcd
	Matching    *matching.Watch // why jobs wait for a slot; run by others
	Now         func() time.Time
	Traced      func(traces.Trace) // takes the traces of what has ended, without blocking; nil: nobody wants them
	// FullCrosscheck is how often a pass asks about all jobs, not only about those that have changed; 0: always.
	FullCrosscheck time.Duration
	SameLedger     bool // the ledger is as the last htcd has closed it: none was put back
}

// Chooses returns what chooses the HTCPools of objects.
func (c Common) Chooses() pool.Chooser {
	return pool.Chooser{Known: c.Pools, Rules: c.Site.PoolRules()}
}

// RulesOf returns the limits and the state of a pool as they are now; without one, the limits that are flags.
func (c Common) RulesOf(name string) admission.Rules {
	var now *v1alpha1.HTCPool
	if c.Pools != nil && name != "" {
		now = c.Pools.Get(name)
	}
	return admission.RulesOf(name, now, c.Site.MaxQueue, c.Site.MaxOpen)
}

// Checks returns the cross-check of runs of a kind.
func (c Common) Checks(kind ledger.Kind, condor crosscheck.Schedd, o crosscheck.RunObserver) *crosscheck.Checker {
	return &crosscheck.Checker{Driver: Drives(c, condor, o), Kind: kind, Mirrors: c.Mirrors}
}

// Drives returns what makes the passes of a cross-check.
func Drives[O crosscheck.Observer](c Common, condor crosscheck.Schedd, o O) crosscheck.Driver[O] {
	return crosscheck.Driver[O]{
		Ledger: c.Ledger, Schedd: condor, As: c.Questioner, Now: c.Now, Observer: o, Whole: c.FullCrosscheck,
	}
}

// Sends returns what sends the runs that a Checker checks. What only the kind knows is to be set.
func (c Common) Sends(condor backend.Schedd, checker *crosscheck.Checker) *sending.Sender {
	return &sending.Sender{
		Runs: checker.Kind, Ledger: c.Ledger, Schedd: condor, Answering: c.Answering,
		Owners: backend.NewOwners(condor, c.Credentials), Staging: c.Staging, Shares: c.Staged,
		Limits: &c.Limits, Tries: &c.Tries, Absences: &c.Absences, Now: c.Now,
		Newest: checker.NewestKnown, NewestNow: checker.NewestHistory,
	}
}
