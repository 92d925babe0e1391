package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnsettledProcsAreThoseThatHTCondorsSilenceDoesNotConfirm(t *testing.T) {
	l, _ := openTemp(t)
	r := testRun("u1")
	r.Procs = 10
	insert(t, l, r)
	done := testRun("u2")
	done.Procs, done.Confirmed = 1, true
	insert(t, l, done)
	code := 0
	setProcs(t, l, map[int]func(*Proc){ // 0 stays as submitted
		1: func(p *Proc) { p.JobStatus, p.Source = 1, "crosscheck" },
		2: func(p *Proc) { p.JobStatus, p.Source = 2, "crosscheck" },
		3: func(p *Proc) { p.JobStatus, p.Source, p.Reason, p.Message = 5, "crosscheck", "Held", "why" },
		4: func(p *Proc) { p.JobStatus, p.Source, p.Absent = 1, "crosscheck", 1 },
		5: func(p *Proc) { p.Status, p.Source, p.ExitCode = StatusSucceeded, "callback", &code },
		6: func(p *Proc) { p.Status, p.Source, p.ExitCode = StatusSucceeded, "crosscheck", &code },
		7: func(p *Proc) { p.JobStatus, p.Source = 7, "crosscheck" },
		8: func(p *Proc) { p.JobStatus, p.Source = 0, "crosscheck" },
		9: func(p *Proc) { p.Status, p.Source = StatusFailed, SourceCarried },
	})
	require.NoError(t, l.Read(t.Context(), func(tx *Tx) error {
		numbers := func(limit int) (all []int) {
			procs, err := tx.Unsettled(HTCJobs, limit)
			require.NoError(t, err)
			for _, p := range procs {
				require.Equal(t, "u1", p.UID)
				all = append(all, p.Proc)
			}
			return all
		}
		require.Equal(t, []int{0, 4, 5, 7, 8}, numbers(100))
		require.Equal(t, []int{0, 4}, numbers(2))
		none, err := tx.Unsettled(Workflows, 100)
		require.Empty(t, none)
		return err
	}))
}

func TestUnsettledNodesAreThoseOfWhichAJobWasSeen(t *testing.T) {
	l, _ := openTemp(t)
	r := insertDAG(t, l, "u1", 3) // 10 nodes
	code := 0
	set(t, l, map[int]func(*Node){ // 0 stays waiting
		1: func(n *Node) { n.Cluster, n.JobStatus, n.Source = 92, 1, "crosscheck" },
		2: func(n *Node) {
			n.Cluster, n.JobStatus, n.Source, n.Reason, n.Message = 93, 5, "crosscheck", "Held", "why"
		},
		3: func(n *Node) { n.Cluster, n.JobStatus, n.Source, n.Absent = 94, 1, "crosscheck", 1 },
		4: func(n *Node) { n.Cluster, n.Status, n.Source, n.ExitCode = 95, StatusSucceeded, "callback", &code },
		5: func(n *Node) { n.Cluster, n.Status, n.Source, n.ExitCode = 96, StatusSucceeded, "crosscheck", &code },
		6: func(n *Node) { n.Cluster, n.JobStatus, n.Source = 97, 7, "crosscheck" },
		7: func(n *Node) { n.Cluster, n.Claimed = 98, true },
	})
	numbers := func(limit int) (numbers []int) {
		mustRead(t, l, func(tx *Tx) error {
			nodes, err := tx.UnsettledNodes(limit)
			numbers = numbersOf(nodes)
			return err
		})
		return numbers
	}
	require.Equal(t, []int{3, 4, 6, 7}, numbers(100))
	require.Equal(t, []int{3, 4}, numbers(2))
	r.Confirmed = true
	mustWrite(t, l, func(tx *Tx) error { return tx.UpdateRun(r) })
	require.Empty(t, numbers(100), "of a DAG that has ended everything is asked")
}
