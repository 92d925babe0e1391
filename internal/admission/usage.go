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
	if len(r.requests()) > 0 {
		if err := u.readRequests(tx, r.Pool); err != nil {
			return u, err
		}
	}
	if r.Shares() {
		err = u.readFactories(tx, r.Pool)
	}
	return u, err
}

// readRequests adds what jobs ask for.
func (u *Usage) readRequests(tx *ledger.Tx, by string) error {
	requests, err := tx.PoolRequests(by)
	for _, at := range requests {
		each := DemandOf(1, pool.ReadEffective(by, at.Effective))
		part := u.Namespaces[at.Namespace]
		part.Cores = part.Cores.plus(at.InUse*each.Cores, at.Waiting*each.Cores)
		part.Memory = part.Memory.plus(at.InUse*each.Memory, at.Waiting*each.Memory)
		u.Cores, u.Memory = u.Cores+at.InUse*each.Cores, u.Memory+at.InUse*each.Memory
		u.Namespaces[at.Namespace] = part
	}
	return err
}

// readFactories adds the factories, and what they may make.
func (u *Usage) readFactories(tx *ledger.Tx, by string) error {
	factories, err := tx.PoolFactories(by)
	for _, at := range factories {
		granted := Share{at.Most, at.MostIdle}
		if at.MostIdle == ledger.IdleNotKnown {
			granted.Idle = at.Most
		}
		u.put(at.UID, Factory{
			Namespace: at.Namespace, Each: DemandOf(1, pool.ReadEffective(by, at.Effective)), Granted: granted,
			Open: at.Open, Idle: at.Idle, Held: at.Held, InUse: at.InUse, ToMake: at.ToBeMade,
		})
	}
	return err
}
