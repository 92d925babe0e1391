// Package supervisor starts a lab's parts in order, answers requests about them, and ends them.
//
//	registry ── images unpacked
//	receiver-net ──────────────────────────┐
//	kdc ── tickets ── condor (with schedd) ┼─ htcd
//	etcd ── apiserver ─┬ controller-manager┤
//	                   └ CRD, RBAC, Secret ┘
package supervisor
