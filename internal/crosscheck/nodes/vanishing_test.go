package nodes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

func TestManyNodesThatVanishAtOnceAreLostAfterAnHourAndTakenBack(t *testing.T) {
	w := newWorld(t)
	w.send("uid", 20)
	for n := range 12 {
		w.node("uid", n, 100+n)
		w.schedd.Run(100+n, 0)
	}
	w.crosscheck()
	all := w.schedd.Jobs()
	for n := range 12 {
		w.schedd.Lose(100+n, 0)
	}
	for range 5 {
		w.crosscheck()
	}
	require.Equal(t, crosscheck.Missing{Jobs: 12, Doubt: crosscheck.ManyMissing}, w.missing)
	require.Equal(t, ledger.StatusOpen, w.nodes("uid")[0].Status)
	w.later(crosscheck.LostAfterMany)
	w.crosscheck()
	require.Equal(t, crosscheck.ReasonLost, w.nodes("uid")[0].Reason)
	w.crosscheck()
	require.Zero(t, w.missing)

	w.schedd.Put(all...)
	w.schedd.Complete(100, 0, 0)
	w.schedd.Leave(100, 0)
	w.later(time.Minute)
	w.crosscheck()
	require.Equal(t, ledger.StatusSucceeded, w.nodes("uid")[0].Status)
	require.Equal(t, ledger.StatusOpen, w.nodes("uid")[1].Status)
}

func TestWhatIsMissingOfOneDAGIsJudgedByWhatTheScheddIsNow(t *testing.T) {
	w := newWorld(t)
	run := w.send("uid", 1)
	w.node("uid", 0, 100)
	w.schedd.Run(100, 0)
	w.crosscheck()
	var err error
	w.daemon, err = w.schedd.Daemon(t.Context(), schedd.Identity{}) // as a pass has learned it
	require.NoError(t, err)
	w.later(time.Minute)
	w.schedd.Reset()
	for range 3 {
		require.NoError(t, w.Check(t.Context(), backend.Groups([]ledger.Run{run})[0]))
		w.later(crosscheck.LostAfter)
	}
	require.Equal(t, ledger.StatusOpen, w.nodes("uid")[0].Status, "it may be that the spool is not mounted")
	require.Equal(t, crosscheck.Missing{Jobs: 1, Doubt: crosscheck.OtherQueue}, w.missing)
}
