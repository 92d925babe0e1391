package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheOutputOfNodesIsFetchedOnce(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 2) // seven nodes
	fetchable := func() (nodes []Node) {
		mustRead(t, l, func(tx *Tx) (err error) { nodes, err = tx.NodesToFetch("u1", 1, 10); return err })
		return nodes
	}
	ended := func(cluster int, source string) func(*Node) {
		return func(n *Node) { n.Cluster, n.Status, n.Source = cluster, StatusSucceeded, source }
	}
	require.Empty(t, fetchable())
	mustWrite(t, l, func(tx *Tx) error {
		return tx.SetDestinations(
			"u1",
			1,
			[]Destination{{Number: 0, Path: "a", Artifact: "r/m:a"}, {Number: 1, Path: "b", Artifact: "r/m:b"}},
		)
	})
	of := func(number int) (n Node) {
		mustRead(t, l, func(tx *Tx) (err error) { n, err = tx.Node("u1", 1, number); return err })
		return n
	}
	pushes := func() (n PushCounts) {
		mustRead(t, l, func(tx *Tx) (err error) { n, err = tx.Pushes("u1", 1); return err })
		return n
	}
	set(t, l, map[int]func(*Node){
		0: ended(10, "crosscheck"), 1: ended(11, "callback"), 2: ended(12, "crosscheck"),
		3: func(n *Node) { n.Cluster, n.JobStatus = 13, jobRunning },
		4: func(n *Node) { n.Status, n.Source = StatusFutile, "crosscheck" }, // it never had a job
		5: func(n *Node) { n.Cluster, n.Status, n.Source = 15, StatusFailed, "crosscheck" },
	})
	page := fetchable()
	require.Equal(t, []int{0, 2, 5}, numbersOf(page))

	// While they were fetched, HTCondor has shown another job of one, and that another goes on.
	set(t, l, map[int]func(*Node){
		2: func(n *Node) { n.Cluster = 22 },
		5: func(n *Node) { n.Status, n.JobStatus = StatusOpen, jobRunning },
	})
	mustWrite(t, l, func(tx *Tx) error { return tx.NodesFetched("u1", 1, page) })
	require.Equal(t, []int{2}, numbersOf(fetchable()))
	require.Equal(t, PushCounts{Any: true, Unpushed: 1}, pushes(), "of the one that has succeeded and is here")
	mustWrite(t, l, func(tx *Tx) error {
		return tx.SetWritten(
			"u1",
			1,
			Written{Destination: Destination{Number: of(0).Step}, Digest: "sha256:1", Push: Pushed},
		)
	})
	require.Equal(t, IsFetched, of(0).Fetched)
	require.Equal(t, NotFetched, of(2).Fetched)
	require.Equal(t, NotFetched, of(5).Fetched)

	// One that is open again is fetched again.
	set(t, l, map[int]func(*Node){0: func(n *Node) { n.Status = StatusOpen }})
	set(t, l, map[int]func(*Node){0: ended(10, "crosscheck")})
	require.Equal(t, []int{0, 2}, numbersOf(fetchable()))
	mustWrite(t, l, func(tx *Tx) error { return tx.NodesFetched("u1", 1, []Node{of(0)}) })
	require.Equal(t, PushCounts{Any: true, Unpushed: 1}, pushes(), "and pushed again")
	set(t, l, map[int]func(*Node){0: func(n *Node) { n.Status = StatusOpen }})

	mustRead(t, l, func(tx *Tx) error {
		some, err := tx.SomeFetched("u1", 1)
		require.False(t, some)
		return err
	})
	mustWrite(t, l, func(tx *Tx) error { return tx.AllNodesFetched("u1", 1) })
	require.Empty(t, fetchable())
	require.Equal(t, IsFetched, of(4).Fetched)
}
