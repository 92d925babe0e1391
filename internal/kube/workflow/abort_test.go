package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestAWorkflowThatANodeHasEndedReturnsWhatItsStepSays(t *testing.T) {
	for name, c := range map[string]struct {
		returns *int32
		finally ledger.Counts
		phase   v1alpha1.Phase
		code    *int32
	}{
		"0 is a success":               {new(int32(0)), ledger.Counts{Succeeded: 1}, v1alpha1.PhaseSucceeded, new(int32(0))},
		"unless finally has failed":    {new(int32(0)), ledger.Counts{Failed: 1}, v1alpha1.PhaseFailed, nil},
		"another number is a failure":  {new(int32(7)), ledger.Counts{Succeeded: 1}, v1alpha1.PhaseFailed, new(int32(7))},
		"without one it has failed so": {nil, ledger.Counts{Succeeded: 1}, v1alpha1.PhaseFailed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			first := of(
				0,
				ledger.Counts{Succeeded: 1, Failed: 1},
				func(d *DAG) { d.Aborted, d.Returns = true, c.returns },
			)
			require.Equal(
				t,
				Decision{Action: Submit, Level: 2},
				Plan(s.with(first)),
				"also if nothing was left to remove",
			)
			s = s.with(first, of(2, c.finally))
			require.Equal(t, c.phase, s.phase())
			require.Equal(t, c.code, newStatus(s, lifecycle.View{}).ExitCode)
		})
	}
}
