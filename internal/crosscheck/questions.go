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

// questions returns the constraints of the questions about all jobs of some runs, to be asked one after the other. Together they
// match each of these jobs; others may be among them.
func questions(runs []ledger.Run) (constraints []string) {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b ledger.Run) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for len(runs) > 0 {
		n, procs, clusters := 1, runs[0].Procs, []int{runs[0].Cluster}
		for ; n < len(runs) && procs+runs[n].Procs <= procsAtOnce; n++ {
			procs, clusters = procs+runs[n].Procs, append(clusters, runs[n].Cluster)
		}
		runs = runs[n:]
		some, from := constraint(clusters), 0
		for ; procs-from > procsAtOnce; from += procsAtOnce { // of a single run
			constraints = append(constraints, fmt.Sprintf("%s && ProcId >= %d && ProcId < %d", some, from, from+procsAtOnce))
		}
		if from > 0 {
			some = fmt.Sprintf("%s && ProcId >= %d", some, from)
		}
		constraints = append(constraints, some)
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
