package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAClusterIsSentAgainOnlyIfNoneOfItsJobsCanHaveRun(t *testing.T) {
	unstaged := condor.Job{
		Cluster:      1,
		Proc:         1,
		Status:       condor.Removed,
		RemoveReason: ReasonStuck + " (by user robot)",
		Reasoned:     true,
	}
	for name, c := range map[string]struct {
		other  condor.Job
		again  bool
		failed bool // the one without files
	}{
		"none got its files":         {condor.Job{Cluster: 1, Status: condor.Removed, RemoveReason: "Staging of job files failed", Reasoned: true}, true, false},
		"the other runs":             {condor.Job{Cluster: 1, Status: condor.Running, StageInFinish: 5}, false, true},
		"the other's ad is unread":   {condor.Job{Cluster: 1, Status: condor.Running, Unread: true}, false, true},
		"of the other is no trace":   {condor.Job{Cluster: 1, Proc: 2}, false, false},
		"the other may still get it": {condor.Job{Cluster: 1, Status: condor.Held, HoldReasonCode: 16, QDate: 1000}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := ledger.Run{Cluster: 1, Procs: 2}
			k := newComparisons([]ledger.Run{run}, unconfirmed, nil)[keyOf(run)]
			k.rows, k.asked = map[int]ledger.Proc{
				0: {Status: ledger.StatusOpen},
				1: {Status: ledger.StatusOpen, Proc: 1},
			}, 2
			k.take(c.other, "condor_q", time.Unix(1001, 0))
			k.take(unstaged, "condor_history", time.Unix(1001, 0))
			k.judgeUnstaged()
			require.Equal(t, c.again, k.neverRan)
			require.Equal(t, c.failed, k.observed[1].outcome.Reason == ReasonStagingFailed)
		})
	}
}
