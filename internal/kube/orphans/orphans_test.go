package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestManyIsAShare(t *testing.T) {
	runs := func(n int) (runs []ledger.Run) {
		for i := range n {
			runs = append(
				runs,
				ledger.Run{UID: fmt.Sprint(i), Attempt: 1, State: ledger.Submitted},
				ledger.Run{UID: fmt.Sprint(i), Attempt: 2, State: ledger.Submitted},
			)
		}
		return runs
	}
	there := func(n, total int) map[string]bool {
		there := map[string]bool{}
		for i := n; i < total; i++ {
			there[fmt.Sprint(i)] = true
		}
		return there
	}
	never := func(_, _ string) bool { return false }
	for _, c := range []struct{ gone, total, kept int }{{5, 5, 0}, {6, 6, 6}, {6, 599, 6}, {6, 600, 0}, {7, 600, 7}} {
		kept, few := sort(runs(c.total), there(c.gone, c.total), nil, never)
		require.Len(t, kept, c.kept, "%+v", c)
		require.Len(t, few, c.gone-c.kept, "%+v", c)
	}
	// HTCJobs that were kept stay kept among any number of others.
	kept, few := sort(runs(1000), there(8, 1000), map[string]bool{"0": false, "1": true}, never)
	require.Len(t, kept, 1)
	require.Len(t, few, 6)
	require.Equal(t, 2, kept[0].Attempt)
}

func TestADeletionIsRememberedOfItsObjectAlone(t *testing.T) {
	var d Deletions
	d.Note("default/one", "first")
	require.True(t, d.seen("default/one", "first"))
	require.False(t, d.seen("default/one", "second"))
	require.False(t, d.seen("default/two", "first"))
	d.Forget("default/one")
	require.False(t, d.seen("default/one", "first"))
}

func TestAnObjectWhoseJobsCannotBeRemovedKeepsNoOtherFromBeingSwept(t *testing.T) {
	var g Guard
	var runs []ledger.Run
	for _, uid := range []string{"a", "b", "c", "d"} {
		g.Deletions.Note("ns/one", uid)
		runs = append(runs, ledger.Run{UID: uid, Attempt: 1, Namespace: "ns", Name: "one", State: ledger.Submitted})
	}
	forgotten := map[string]bool{}
	err := g.Sweep(t.Context(), "ns/one", runs, Owner{
		Exists: func(_ context.Context, _, _, uid string) (bool, error) { return uid == "d", nil },
		Remove: func(_ context.Context, uid string, _ []ledger.Run) error {
			if uid == "c" {
				return nil
			}
			return errors.New("no ticket for " + uid)
		},
		Forget: func(_ context.Context, _, _, uid string) error {
			forgotten[uid] = true
			return nil
		},
	})
	require.ErrorContains(t, err, "no ticket for a")
	require.ErrorContains(t, err, "no ticket for b")
	require.Equal(t, map[string]bool{"c": true}, forgotten)
}
