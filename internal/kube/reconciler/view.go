package reconciler

import (
	"time"

	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// View returns what the status of an object needs besides what was gathered; run is its newest one, nil if there is
// none, and at the schedd that it depends on.
func (r *Reconciler[O, S, K]) View(
	object O, run *ledger.Run, at schedd.Endpoint, fresh *jobcredentials.Watch, blockers Blockers, now time.Time,
) lifecycle.View {
	v := lifecycle.View{
		Blocker: blockers.Of(Acting), Unfetched: blockers.Of(Fetching), Unpushed: blockers.Of(Pushing), Now: now,
		Secret: r.o.Prover.Of(r.AccountOf(object)), Fresh: fresh.Of(string(object.GetUID())),
		Backend: r.o.Answering.State(at),
	}
	if run != nil {
		v.Match = r.o.Matching.Of(run.UID, run.Attempt)
	}
	return v
}
