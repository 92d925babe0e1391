package admission

import "htc.cern.ch/htcd/internal/ledger"

// ReadUsage sums up what the ledger has of a pool, without Sent. What its state holds is looked for only if that matters.
func ReadUsage(tx *ledger.Tx, r Rules) (Usage, error) {
	u := Usage{Namespaces: map[string]int{}}
	all, err := tx.PoolUse(r.Pool)
	if err != nil {
		return u, err
	}
	for _, at := range all {
		u.Open += at.Open()
		u.Idle += at.Sending + at.Unseen + at.Idle
		u.Running += at.Running
		u.Held += at.Held
		u.Sending += at.Sending
		u.Namespaces[at.Namespace] += at.Open()
	}
	if most := r.Limits.MaxHeld; most != nil && u.Held > int(*most) {
		u.HeldByPool, err = tx.HeldByPools(r.Pool)
	}
	return u, err
}
