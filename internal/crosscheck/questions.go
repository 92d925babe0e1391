package crosscheck

import (
	"cmp"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// procsAtOnce is for how many jobs one condor_q is at most: it keeps the whole answer in memory, some 3 KB a job. Every
// question costs the schedd a look at all of its queue, so there should not be many.
const procsAtOnce = 50_000

// parts sorts runs by cluster and cuts them into parts for which one question does. A run of more jobs is a part of its own.
func parts(runs []ledger.Run) (all [][]ledger.Run) {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b ledger.Run) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for len(runs) > 0 {
		n, procs := 1, runs[0].Procs
		for ; n < len(runs) && procs+runs[n].Procs <= procsAtOnce; n++ {
			procs += runs[n].Procs
		}
		all, runs = append(all, runs[:n]), runs[n:]
	}
	return all
}

// questions returns the constraints of the questions about all jobs of some runs, to be asked one after the other. Together they
// match each of these jobs; others may be among them.
func questions(runs []ledger.Run) (constraints []string) {
	for _, some := range parts(runs) {
		var clusters []int
		for _, run := range some {
			clusters = append(clusters, run.Cluster)
		}
		these, from := constraint(clusters), 0
		for procs := some[0].Procs; len(some) == 1 && procs-from > procsAtOnce; from += procsAtOnce {
			constraints = append(constraints, fmt.Sprintf("%s && ProcId >= %d && ProcId < %d", these, from, from+procsAtOnce))
		}
		if from > 0 {
			these = fmt.Sprintf("%s && ProcId >= %d", these, from)
		}
		constraints = append(constraints, these)
	}
	return constraints
}

// MaxNamed is how many clusters a constraint names. A command line takes 128 KiB in one argument; past a few thousand
// clusters the schedd is faster with a comparison or two per job, and jobs that were not asked about are ignored.
const MaxNamed = 2000

// constraint matches the jobs of these clusters, and perhaps of others between them.
func constraint(clusters []int) string {
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	if len(clusters) > MaxNamed {
		return fmt.Sprintf("%s && ClusterId >= %d && ClusterId <= %d", schedd.Tagged, clusters[0], clusters[len(clusters)-1])
	}
	return schedd.ClusterConstraint(clusters...)
}
