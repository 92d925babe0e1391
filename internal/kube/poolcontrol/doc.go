// Package poolcontrol keeps HTCPools: it writes their statuses, and while one is suspended it holds what waits in
// HTCondor for a slot. HTCPools are a kind of package reconciler, which writes the statuses; they have no runs. Both
// follow from the pools as they are now, the ledger and the ads, so nothing is remembered:
//
//	Suspended          what the ledger shows as idle, or as not yet seen, is held; repeated, since a job that is evicted waits again
//	                   (of a workflow DAGMan, and its nodes that are idle)
//	any other state    what the ledger shows as held by a pool is released; this includes pools that were deleted
//
// The ads have the hold's own subcode, by which the cross-check recognises it, and by which only these holds are ended.
package poolcontrol
