package metrics

import "htc.cern.ch/htcd/internal/ledger"

// busiestNamespaces bounds the series of a gauge by namespace and pool.
const busiestNamespaces = 100

// busiest returns the first places, and the others together.
func busiest(all []ledger.NamespaceUse) []ledger.NamespaceUse {
	if len(all) <= busiestNamespaces {
		return all
	}
	others := ledger.NamespaceUse{Namespace: otherNamespaces, Pool: otherNamespaces}
	for _, u := range all[busiestNamespaces:] {
		others.Idle, others.Running, others.Held = others.Idle+u.Idle, others.Running+u.Running, others.Held+u.Held
	}
	return append(all[:busiestNamespaces:busiestNamespaces], others)
}
