package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTablesComeBackAsTheyWent(t *testing.T) {
	l, _ := openTemp(t)
	r := insertDAG(t, l, "u1", 2)
	var rows []string
	for i := range 3*perBlock + 1 {
		rows = append(rows, fmt.Sprintf("FILE=%d\n", i))
	}
	want := map[string][]string{"sim": rows, "merge": {"A=1\n"}}
	mustWrite(t, l, func(tx *Tx) error {
		require.ErrorIs(t, tx.SetTables("u1", 2, map[string]Items{"sim": PackItems(rows)}), ErrNotFound)
		return tx.SetTables("u1", 1, map[string]Items{"sim": PackItems(rows), "merge": PackItems(want["merge"])})
	})
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.Tables("u1", 1)
		require.NoError(t, err)
		require.Equal(t, want, got)
		n, err := tx.TableRows("u1", 1)
		require.Equal(t, map[string]int{"sim": len(rows), "merge": 1}, n)
		return err
	})
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns(r.UID) })
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.Tables("u1", 1)
		require.Empty(t, got)
		return err
	})
}
