package job

import "htc.cern.ch/htcd/internal/kube/orphans"

// Orphans returns what of it is about objects that have vanished.
func (o ReconcileOptions) Orphans() orphans.Scope {
	return orphans.Scope{Namespace: o.Namespace, Name: o.Name, DryRun: o.DryRun, Remove: o.RemoveOrphans}
}
