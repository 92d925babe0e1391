package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodesAreCarriedOver(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 2)
	set(t, l, map[int]func(*Node){
		0: func(n *Node) {
			n.Cluster, n.Status, n.Source, n.Reason = 100, StatusSucceeded, "crosscheck", "Completed"
		},
		1: func(n *Node) { n.Cluster, n.Status, n.Source = 101, StatusFailed, "crosscheck" },
	})
	mustWrite(t, l, func(tx *Tx) error {
		n, err := tx.Node("u1", 1, 0)
		require.NoError(t, err)
		_, err = tx.SetResults(n, []Result{{Name: "chi2", Value: 1.5}}, true)
		return err
	})
	next, steps, nodes := testDAG("u1", 2)
	next.Attempt, next.Cluster = 2, 92
	insert(t, l, next)
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.InsertNodes(next, steps, nodes))
		return tx.CarryNodes(next, []Carried{{Number: 3, From: 1, Node: 0}})
	})
	mustRead(t, l, func(tx *Tx) error {
		n, err := tx.Node("u1", 2, 3)
		require.NoError(t, err)
		require.Equal(
			t,
			[]any{100, StatusSucceeded, SourceCarried, "Completed"},
			[]any{n.Cluster, n.Status, n.Source, n.Reason},
		)
		counts, err := tx.NodeCounts("u1", 2)
		require.NoError(t, err)
		require.Equal(t, 1, counts[0].Succeeded)
		require.Equal(t, 1, counts[0].Active)
		all, err := tx.AllCarried("u1", 2)
		require.NoError(t, err)
		require.False(t, all)
		var value float64
		require.NoError(
			t,
			tx.queryRow(
				`SELECT v.value FROM results v JOIN runs r ON r.id = v.run WHERE r.attempt = 2 AND v.node = 3`,
			).Scan(
				&value,
			),
		)
		require.Equal(t, 1.5, value)
		unfetched, err := tx.NodesToFetch("u1", 2, 10)
		require.NoError(t, err)
		require.Empty(t, unfetched)
		some, err := tx.SomeFetched("u1", 2)
		require.NoError(t, err)
		require.False(t, some)
		return nil
	})
	mustWrite(t, l, func(tx *Tx) error {
		made, err := tx.Run("u1", 1)
		require.NoError(t, err)
		made.Factory = 7
		require.NoError(t, tx.UpdateRun(made))
		require.NoError(t, tx.CarryNodes(next, []Carried{{Number: 3, From: 1, Node: 0}}))
		n, err := tx.Node("u1", 2, 3)
		require.Zero(t, n.Cluster, "which proc of it is not known here")
		return err
	})
	require.ErrorIs(
		t,
		l.Write(
			t.Context(),
			func(tx *Tx) error { return tx.CarryNodes(next, []Carried{{Number: 4, From: 1, Node: 1}}) },
		),
		ErrNotFound,
		"it has failed",
	)
	require.ErrorIs(
		t,
		l.Write(
			t.Context(),
			func(tx *Tx) error { return tx.CarryNodes(next, []Carried{{Number: 4, From: 7, Node: 0}}) },
		),
		ErrNotFound,
	)
}

func TestWhatHasBeenPushedOfCarriedNodesIsNotPushedAgain(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 2)
	succeeded := func(n *Node) { n.Cluster, n.Status, n.Source = 100+n.Number, StatusSucceeded, "crosscheck" }
	set(t, l, map[int]func(*Node){0: succeeded, 1: succeeded, 3: succeeded, 6: succeeded})
	to := func(a, b string) []Destination {
		return []Destination{{Number: 0, Path: "a", Artifact: a}, {Number: 1, Path: "b", Artifact: b}}
	}
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.SetDestinations("u1", 1, to("r/a", "r/b")))
		require.NoError(t, tx.ExpectNodePushes("u1", 1, ""))
		for step, node := range []int{0, 1} { // not node 3
			require.NoError(
				t,
				tx.SetWritten(
					"u1",
					1,
					Written{
						Destination: Destination{Number: step},
						Proc:        node,
						Size:        7,
						Digest:      "sha256:7",
						Push:        Pushed,
					},
				),
			)
		}
		return nil
	})
	next, steps, nodes := testDAG("u1", 2)
	next.Attempt, next.Cluster = 2, 92
	insert(t, l, next)
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.InsertNodes(next, steps, nodes))
		require.NoError(t, tx.SetDestinations("u1", 2, to("r/a", "elsewhere/b")))
		require.NoError(t, tx.CarryNodes(next, []Carried{{0, 1, 0}, {1, 1, 1}, {3, 1, 3}, {6, 1, 6}}))
		counts, err := tx.Pushes("u1", 2)
		require.NoError(t, err)
		require.Equal(t, PushCounts{Any: true, Pushed: 1}, counts, "their output is not linked yet")
		return tx.ExpectNodePushes("u1", 2, "what ran has left nothing")
	})
	mustRead(t, l, func(tx *Tx) error {
		counts, err := tx.Pushes("u1", 2)
		require.NoError(t, err)
		require.Equal(t, PushCounts{Any: true, Unpushed: 2}, counts)
		w, n, err := tx.NextNodePush("u1", 2, 0)
		require.NoError(t, err)
		require.Equal(t, []any{3, "r/a", ""}, []any{n.Number, w.Artifact, w.Note})
		w, n, err = tx.NextNodePush("u1", 2, 1)
		require.NoError(t, err)
		require.Equal(t, []any{1, "elsewhere/b"}, []any{n.Number, w.Artifact}, "it goes elsewhere now")
		return nil
	})
}
