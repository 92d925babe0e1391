package crosscheck

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestEachRepairIsOfOneKind(t *testing.T) {
	code := 3
	open := ledger.Proc{Status: ledger.StatusOpen}
	exited := ledger.Proc{Status: ledger.StatusFailed, ExitCode: &code, Reason: "ExitCode"}
	succeeded := ledger.Proc{Status: ledger.StatusSucceeded, ExitCode: new(int)}
	removed := ledger.Proc{Status: ledger.StatusFailed, Reason: ReasonRemoved}
	lost := ledger.Proc{Status: ledger.StatusFailed, Reason: ReasonLost}
	for name, c := range map[string]struct {
		run     ledger.Run
		was, is ledger.Proc
		want    Repair
	}{
		"a job that exited and did not say so lost its callback":              {ledger.Run{}, open, exited, LostCallback},
		"so did one that succeeded":                                           {ledger.Run{}, open, succeeded, LostCallback},
		"one that may be retried only says when it exited, not that it ended": {ledger.Run{Deferred: true}, open, exited, SilentEnd},
		"one that is being stopped says how it was killed":                    {ledger.Run{Stop: StopSuspended}, open, exited, SilentEnd},
		"one that was removed says nothing":                                   {ledger.Run{}, open, removed, SilentEnd},
		"one without a trace has vanished":                                    {ledger.Run{}, open, lost, Vanished},
		"one that ended otherwise than it said was contradicted":              {ledger.Run{}, succeeded, removed, Contradicted},
		"one that had ended and goes on is open again":                        {ledger.Run{}, exited, open, Reopened},
		"one that began to run needed no repair":                              {ledger.Run{}, open, open, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := RepairOf(c.run, Change{c.was, c.is})
			require.Equal(t, c.want, kind)
			require.Equal(t, c.want != "", ok)
		})
	}
}
