package metrics

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestNamespacesBeyondTheBusiestAreSummedUp(t *testing.T) {
	var all []ledger.NamespaceUse
	for i := range 100_000 {
		all = append(all, ledger.NamespaceUse{Namespace: fmt.Sprint(i), Idle: 1, Running: 2, Held: 3})
	}
	shown := busiest(all)
	require.Len(t, shown, busiestNamespaces+1)
	require.Equal(
		t,
		ledger.NamespaceUse{
			Namespace: otherNamespaces,
			Pool:      otherNamespaces,
			Idle:      99_900,
			Running:   199_800,
			Held:      299_700,
		},
		shown[busiestNamespaces],
	)
	require.Equal(t, "100", all[busiestNamespaces].Namespace, "what is remembered stays")
	require.Equal(t, all[:100], busiest(all[:100]))
}
