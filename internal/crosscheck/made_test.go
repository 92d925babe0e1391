package crosscheck

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestAFactoryWhoseHTCJobWasDeletedMeanwhileInterruptsNoCrosscheck(t *testing.T) {
	w := newPair(t, 0)
	deleted := ledger.Run{UID: "u-1", Attempt: 1, Cluster: 2, Procs: 5, Factory: 2}
	_, err := w.ours.addMade(t.Context(), schedd.Identity{}, []ledger.Run{deleted})
	require.NoError(t, err)
}
