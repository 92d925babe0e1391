package follow

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/usage"
)

func (w *world) stepUsage() []usage.Step {
	w.t.Helper()
	answer, err := w.NodeUsage(w.t.Context(), ofNodes("", 0, 0))
	return linesOf[usage.Step](w.t, answer, err)
}

func TestTheUsageOfNodesIsToldStepByStep(t *testing.T) {
	w := newWorkflow(t)
	_, err := w.NodeUsage(t.Context(), ofNodes("", 0, 0))
	require.ErrorContains(t, err, "no node has been sent yet")
	w.sentFirst()
	steps := w.stepUsage()
	require.Len(t, steps, 1)
	require.Nil(t, steps[0].Usage)
	require.Nil(t, steps[0].Asked, "no job of a node was seen")

	used := func(memory int64) string { return usage.Use{Memory: memory, Wall: 10, AskedMemory: 2000}.String() }
	ended := func(cluster int, memory int64) func(*ledger.Node) {
		return func(n *ledger.Node) { n.Cluster, n.Status, n.Usage = cluster, ledger.StatusSucceeded, used(memory) }
	}
	w.changed(1, 0, ended(93, 300))
	w.changed(1, 1, ended(94, 420))
	w.changed(1, 2, func(n *ledger.Node) { n.Cluster, n.JobStatus = 95, int(condor.Running) })
	w.changed(1, 3, func(n *ledger.Node) { ended(96, 9000)(n); n.Source = ledger.SourceCarried })
	w.sentDAG(2, []ledger.Step{{Number: 1, Name: "plot"}}, ledger.Place{Step: 1, Sequence: ledger.AllSequences})
	w.changed(2, 0, ended(97, 10))
	w.set(func() {
		w.status = condor.Running
		w.ad = condor.Job{JobStartDate: 1, MemoryUsage: 310, RequestMemory: 2000, RequestCpus: 1}
		w.ad.Node = condor.NodeTag{UID: "f", DAG: 1, Number: 2}
	})
	steps = w.stepUsage()
	require.Len(t, steps, 2)
	fit, plot := steps[0], steps[1]
	require.Equal(t, "fit", fit.Step)
	require.Equal(t, [3]int{3, 1, 2}, [3]int{fit.Jobs, fit.Running, fit.Ended})
	require.Equal(t, "420Mi", fit.Memory.Worst.String())
	require.EqualValues(t, 1, fit.Memory.WorstProc)
	require.Equal(t, "0/1", fit.Nodes[1])
	require.NotNil(t, fit.Asked)
	require.Equal(t, [3]int{1, 0, 1}, [3]int{plot.Jobs, plot.Running, plot.Ended})
	require.EqualValues(t, 4, plot.Memory.WorstProc, "nodes are numbered across the DAGs")
	require.Equal(t, "all/0", plot.Nodes[4])

	w.changed(1, 1, ended(94, 2100))
	require.Contains(t, w.stepUsage()[0].Advice, "as job 0/1 used 2100Mi")
	w.set(func() { w.silent = errors.New("nobody answers") })
	require.Equal(t, "nobody answers", w.stepUsage()[0].Unknown)
}
