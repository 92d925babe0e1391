package crosscheck

import (
	"cmp"
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// JobsAtOnce is the maximum number of jobs one condor_q asks about: it holds the complete answer in memory, about 3 KB
// per job. Every question makes the schedd scan its complete queue, so there should be few.
const JobsAtOnce = 50_000

// parts sorts runs by cluster and divides them into parts that one question can cover.
func parts(runs []ledger.Run) (all [][]ledger.Run) {
	runs = slices.SortedFunc(
		slices.Values(runs),
		func(a, b ledger.Run) int { return cmp.Compare(a.Cluster, b.Cluster) },
	)
	return Parts(runs, len(runs), JobsAtOnce, procsOf)
}

func procsOf(run ledger.Run) int { return run.Procs }

// Parts divides runs into parts of at most so many runs and jobs. A run with more jobs is its own part.
func Parts(runs []ledger.Run, mostRuns, mostJobs int, jobsOf func(ledger.Run) int) (all [][]ledger.Run) {
	for len(runs) > 0 {
		n, jobs := 1, jobsOf(runs[0])
		for ; n < min(len(runs), mostRuns) && jobs+jobsOf(runs[n]) <= mostJobs; n++ {
			jobs += jobsOf(runs[n])
		}
		all, runs = append(all, runs[:n]), runs[n:]
	}
	return all
}

// questions returns the constraints of the questions about all jobs of some runs, to be asked one after another.
// Together they match every one of these jobs, and perhaps others.
func questions(runs []ledger.Run) (constraints []condor.Constraint) {
	for _, some := range parts(runs) {
		var clusters []int
		for _, run := range some {
			clusters = append(clusters, run.Cluster)
		}
		these, from := constraint(clusters), 0
		for procs := some[0].Procs; len(some) == 1 && procs-from > JobsAtOnce; from += JobsAtOnce {
			constraints = append(constraints, these.And(condor.ProcsFrom(from, from+JobsAtOnce)))
		}
		if from > 0 {
			these = these.And(condor.ProcsFrom(from, 0))
		}
		constraints = append(constraints, these)
	}
	return constraints
}

// MaxNamed is how many clusters a constraint names. One command-line argument holds at most 128 KiB.
const MaxNamed = 2000

// The schedd compares a range three times faster than a list of 500, and jobs that were not asked about are ignored. So
// a range is asked about where there are at least so many clusters, and this share of the range.
const (
	fewNamed = 50
	dense    = 4 // one in so many
)

// constraint matches the jobs of these clusters, and perhaps of others in between.
func constraint(clusters []int) condor.Constraint {
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	n, first, last := len(clusters), clusters[0], clusters[len(clusters)-1]
	if n > MaxNamed || n > fewNamed && last-first < dense*n {
		return condor.Clusters(first, last)
	}
	return condor.ClusterConstraint(clusters...)
}
