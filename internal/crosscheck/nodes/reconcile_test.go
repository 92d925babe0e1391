package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestReconcileShowsAndRepairsNodesThatDiffer(t *testing.T) {
	w := newWorld(t)
	run := w.send("flow", 3) // six nodes
	w.node("flow", 0, 100)
	w.node("flow", 1, 101)
	w.node("flow", 2, 102)
	w.node("flow", 3, 103)
	w.leaves(100, 0)
	w.leaves(102, 0)
	w.schedd.Run(101, 0)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{"done", "running", "done", "idle", "waiting", "waiting"}, w.states("flow"))

	// Somebody edits the ledger; then a node is sent, and one vanishes.
	edit := func(number int, f func(*ledger.Node)) {
		w.write(func(tx *ledger.Tx) error {
			n, err := tx.Node("flow", 1, number)
			require.NoError(t, err)
			f(&n)
			return tx.UpdateNode(n)
		})
	}
	edit(0, func(n *ledger.Node) { n.Status, n.ExitCode = ledger.StatusFailed, new(3) })
	edit(1, func(n *ledger.Node) { n.Status, n.ExitCode = ledger.StatusSucceeded, new(0) })
	w.schedd.Lose(103, 0)
	w.node("flow", 4, 104)
	w.schedd.Run(104, 0)

	reconcile := func(dry bool) (found []crosscheck.Difference) {
		checked, err := w.Reconcile(
			t.Context(),
			[]ledger.Run{run},
			dry,
			func(d crosscheck.Difference) { found = append(found, d) },
		)
		require.NoError(t, err)
		require.Equal(t, 6, checked)
		return found
	}
	want := []crosscheck.Difference{
		{
			Namespace: "physics",
			Name:      "flow",
			JobID:     "100.0",
			Was:       "Failed (exit code 3)",
			Is:        "Succeeded",
			Evidence:  "node 0 of DAG 1 (first): condor_history: JobStatus 4 (Completed), exit code 0",
			Repaired:  true,
		},
		{
			Namespace: "physics",
			Name:      "flow",
			JobID:     "101.0",
			Was:       "Succeeded",
			Is:        "Running",
			Evidence:  "node 1 of DAG 1 (second): condor_q: JobStatus 2 (Running), on slot1@node.test",
			Repaired:  true,
		},
		{
			Namespace: "physics",
			Name:      "flow",
			JobID:     "103.0",
			Was:       "Idle",
			Is:        "Absent",
			Evidence:  "node 3 of DAG 1 (second): " + crosscheck.NotYetLost,
		},
		{
			Namespace: "physics",
			Name:      "flow",
			JobID:     "104.0",
			Was:       "Waiting",
			Is:        "Running",
			Evidence:  "node 4 of DAG 1 (first): condor_q: JobStatus 2 (Running), on slot1@node.test",
			Repaired:  true,
		},
	}
	before := w.nodes("flow")
	dry := reconcile(true)
	require.Equal(t, before, w.nodes("flow"))
	for i := range dry {
		dry[i].Repaired = want[i].Repaired
	}
	require.Equal(t, want, dry)
	require.Equal(t, want, reconcile(false))
	require.Equal(t, []ledger.NodeState{"done", "running", "done", "idle", "running", "waiting"}, w.states("flow"))
}
