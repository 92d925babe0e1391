package admission

import (
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/pool"
)

// ReadUsage sums up what the ledger has of a pool, without Sent. What its state holds is looked for only if that
// matters.
func ReadUsage(tx *ledger.Tx, r Rules) (Usage, error) {
	u := Usage{Namespaces: map[string]Part{}}
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
		part := u.Namespaces[at.Namespace]
		part.Open += at.Open()
		part.Idle += at.Sending + at.Unseen + at.Idle
		part.Waiting += at.Idle
		part.Held += at.Held
		u.Namespaces[at.Namespace] = part
	}
	if most := r.Limits.MaxHeld; most != nil && u.Held > int(*most) {
		held, err := tx.HeldByPools(r.Pool)
		if err != nil {
			return u, err
		}
		for ns, n := range held {
			part := u.Namespaces[ns]
			part.HeldByPool, u.HeldByPool = n, u.HeldByPool+n
			u.Namespaces[ns] = part
		}
	}
	if len(r.requests()) == 0 {
		return u, nil
	}
	requests, err := tx.PoolRequests(r.Pool)
	for _, at := range requests {
		each := DemandOf(1, pool.ReadEffective(r.Pool, at.Effective))
		part := u.Namespaces[at.Namespace]
		part.Cores = part.Cores.plus(at.InUse*each.Cores, at.Waiting*each.Cores)
		part.Memory = part.Memory.plus(at.InUse*each.Memory, at.Waiting*each.Memory)
		u.Cores, u.Memory = u.Cores+at.InUse*each.Cores, u.Memory+at.InUse*each.Memory
		u.Namespaces[at.Namespace] = part
	}
	return u, err
}
