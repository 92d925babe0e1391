package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachProcsItemIsFoundAgain(t *testing.T) {
	l, _ := openTemp(t)
	var texts []string
	for i := range 3*perBlock + 1 {
		texts = append(texts, fmt.Sprintf("ENERGY=13000\nSEED=%d\n", i))
	}
	require.NoError(t, l.Write(t.Context(), func(tx *Tx) error {
		require.ErrorIs(t, tx.SetItems("u-1", 1, PackItems(texts)), ErrNotFound)
		require.NoError(t, tx.InsertRun(Run{UID: "u-1", Attempt: 1, Namespace: "a", Name: "b", State: Intent}))
		require.NoError(t, tx.InsertRun(Run{UID: "u-1", Attempt: 2, Namespace: "a", Name: "b", State: Intent}))
		require.NoError(t, tx.SetItems("u-1", 1, PackItems([]string{"OLD=1\n"})))
		return tx.SetItems("u-1", 1, PackItems(texts))
	}))
	read := func(fn func(tx *Tx)) {
		require.NoError(t, l.Read(t.Context(), func(tx *Tx) error { fn(tx); return nil }))
	}
	read(func(tx *Tx) {
		for _, proc := range []int{0, 1, perBlock - 1, perBlock, 2*perBlock + 7, 3 * perBlock} {
			item, err := tx.Item("u-1", 1, proc)
			require.NoError(t, err)
			require.Equal(t, texts[proc], item)
		}
		all, err := tx.Items("u-1", 1)
		require.NoError(t, err)
		require.Equal(t, texts, all)
		item, err := tx.Item("u-1", 1, 3*perBlock+1)
		require.NoError(t, err)
		require.Empty(t, item, "beyond the last")
		item, err = tx.Item("u-1", 2, 0)
		require.NoError(t, err)
		require.Empty(t, item, "a run without items")
	})
	require.NoError(t, l.Write(t.Context(), func(tx *Tx) error { return tx.DeleteRuns("u-1") }))
	read(func(tx *Tx) {
		var n int
		require.NoError(t, tx.queryRow(`SELECT count(*) FROM items`).Scan(&n))
		require.Zero(t, n, "they go with the run")
	})
}

func BenchmarkItems(b *testing.B) {
	var texts []string
	for i := range 100_000 {
		texts = append(texts, fmt.Sprintf("ENERGY=13000\nSEED=%d\n", i))
	}
	for b.Loop() {
		size := 0
		for _, block := range PackItems(texts).blocks {
			size += len(block)
		}
		b.ReportMetric(float64(size), "bytes")
	}
}
