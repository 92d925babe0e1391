package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestWhoseWordCounts(t *testing.T) {
	began := time.Unix(1000, 0)
	before, after := began.Add(-time.Minute), began.Add(time.Minute)
	run := func(attempt int, state ledger.RunState, confirmed bool, checked time.Time) *ledger.Run {
		return &ledger.Run{Attempt: attempt, State: state, Confirmed: confirmed, Checked: checked}
	}
	for name, c := range map[string]struct {
		attempt int32 // the status'
		run     *ledger.Run
		agreed  bool
		want    Word
	}{
		"nothing was ever sent":                                          {0, nil, false, LedgersWord},
		"both know the same attempt":                                     {1, run(1, ledger.Submitted, false, before), false, LedgersWord},
		"the ledger is ahead":                                            {1, run(2, ledger.Submitted, false, before), false, LedgersWord},
		"the ledger was lost":                                            {1, nil, false, StatusWord},
		"an older ledger was put back, whose attempt has ended":          {2, run(1, ledger.Submitted, true, before), false, StatusWord},
		"an older ledger was put back, whose attempt was being sent":     {2, run(1, ledger.Intent, false, before), false, StatusWord},
		"an older ledger has an intent that the status has seen sent":    {1, run(1, ledger.Intent, false, before), false, StatusWord},
		"the ledger's attempt was open when it was last asked about":     {2, run(1, ledger.Submitted, false, before), false, HTCondorsWord},
		"the ledger's attempt is open, as HTCondor has said since":       {2, run(1, ledger.Submitted, false, after), false, LedgersWord},
		"edited while the attempt runs":                                  {99, run(1, ledger.Submitted, false, before), true, LedgersWord},
		"edited after the attempt has ended":                             {99, run(1, ledger.Submitted, true, before), true, LedgersWord},
		"edited before anything was sent":                                {99, nil, true, LedgersWord},
		"edited while it is being sent: the cluster is found by its tag": {1, run(1, ledger.Intent, false, before), true, LedgersWord},
	} {
		t.Run(name, func(t *testing.T) {
			status := v1alpha1.HTCJobStatus{Attempt: c.attempt, ClusterID: 1}
			require.Equal(t, c.want, Whose(status, c.run, c.agreed, began))
		})
	}
}
