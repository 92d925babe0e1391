package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheQueuesOfAScheddAreKeptInOrderAndBounded(t *testing.T) {
	l, _ := openTemp(t)
	at := time.UnixMilli(1_000).UTC()
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.AddQueue("", "other", Queue{7, at}))
		for i := range mostQueues + 3 {
			require.NoError(t, tx.AddQueue("", "a", Queue{int64(i), at.Add(time.Duration(i) * time.Second)}))
		}
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		all, err := tx.Queues("", "a")
		require.NoError(t, err)
		require.Len(t, all, mostQueues)
		require.Equal(t, Queue{mostQueues + 2, at.Add((mostQueues + 2) * time.Second)}, all[mostQueues-1])
		all, err = tx.Queues("", "other")
		require.Equal(t, []Queue{{7, at}}, all)
		return err
	})
}
