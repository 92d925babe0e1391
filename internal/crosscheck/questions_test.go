package crosscheck

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAQuestionIsForSoManyJobsAtMost(t *testing.T) {
	runs := func(from, n, procs int) (all []ledger.Run) {
		for i := range n {
			all = append(all, ledger.Run{Cluster: from + n - 1 - i, Procs: procs})
		}
		return all
	}
	for name, c := range map[string]struct {
		runs []ledger.Run
		want []condor.Constraint
	}{
		"none":                          {nil, nil},
		"many, far from each other":     {append(runs(1, 30, 1), runs(900, 30, 1)...), []condor.Constraint{condor.ClusterConstraint(append(numbers(1, 30), numbers(900, 929)...)...)}},
		"few":                           {runs(7, 2, 3), []condor.Constraint{condor.Tagged + " && member(ClusterId, {7,8})"}},
		"as many as one question takes": {runs(7, 1, JobsAtOnce), []condor.Constraint{condor.Tagged + " && member(ClusterId, {7})"}},
		"one HTCJob of more": {runs(7, 1, 2*JobsAtOnce), []condor.Constraint{
			condor.Tagged + " && member(ClusterId, {7}) && ProcId >= 0 && ProcId <= 49999",
			condor.Tagged + " && member(ClusterId, {7}) && ProcId >= 50000",
		}},
		"300,000 jobs in 3,000 HTCJobs, and two large ones": {append(runs(11, 3000, 100), runs(9, 2, 30_000)...), []condor.Constraint{
			condor.Tagged + " && member(ClusterId, {9})",
			between(10, 210),
			between(211, 710), between(711, 1210), between(1211, 1710),
			between(1711, 2210), between(2211, 2710), between(2711, 3010),
		}},
		"of very many HTCJobs none is named": {runs(1, JobsAtOnce+1, 1), []condor.Constraint{
			between(1, 50000), condor.Tagged + " && member(ClusterId, {50001})",
		}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, questions(c.runs)) })
	}
}

func numbers(from, to int) (all []int) {
	for i := from; i <= to; i++ {
		all = append(all, i)
	}
	return all
}

func between(from, to int) condor.Constraint {
	return condor.Constraint(fmt.Sprintf("%s && ClusterId >= %d && ClusterId <= %d", condor.Tagged, from, to))
}
