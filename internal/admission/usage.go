package admission

import "htc.cern.ch/htcd/internal/ledger"

// UsageOf sums up what the ledger has of a pool, without Sent and HeldByPool.
func UsageOf(all []ledger.PoolUse) Usage {
	u := Usage{Namespaces: map[string]int{}}
	for _, at := range all {
		u.Open += at.Open()
		u.Idle += at.Sending + at.Unseen + at.Idle
		u.Running += at.Running
		u.Held += at.Held
		u.Sending += at.Sending
		u.Namespaces[at.Namespace] += at.Open()
	}
	return u
}
