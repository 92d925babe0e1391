package outage

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// inflate holds a job with a reason of 17 MB: condor_q then fails completely when asked for it.
func (o outage) inflate(job *v1alpha1.HTCJob) {
	o.T.Helper()
	letters := `"` + strings.Repeat("x", 100_000) + `"`
	o.as("condor_qedit", job.Status.JobID[0], "WantOS", letters)
	o.as("condor_qedit", job.Status.JobID[0], "PeriodicHoldReason", "strcat("+strings.Repeat("WantOS, ", 169)+"WantOS)")
	o.as("condor_qedit", job.Status.JobID[0], "PeriodicHold", "true")
	o.Eventually(func() bool {
		return len(o.Condor("condor_q", trial.Tagged(job)+" && size(HoldReason) > 16000000", "JobStatus")) == 1
	}, func() string { return "no reason of 17 MB" })
}

// as runs one of HTCondor's commands as htcd's account.
func (o outage) as(command string, args ...string) {
	o.T.Helper()
	_, err := o.Lab.RunAs(o.T.Context(), "robot", command, args...)
	require.NoError(o.T, err)
}

func TestOneHugeAdHidesNoOther(t *testing.T) {
	o := begin(t, "--command-timeout=30s")
	// It would slow down every read of the lab's history from its end.
	t.Cleanup(func() { require.NoError(t, os.Truncate(o.Lab.Path("condor", "spool", "history"), 0)) })
	o.Create("huge", "exit 0\n", never)
	o.Create("held", "sleep 1000\n")
	o.Create("removed", "sleep 1000\n")
	o.running("held")
	o.running("removed")

	o.inflate(o.Phase("huge", v1alpha1.PhaseIdle))
	o.as("condor_hold", "-reason", "let it rest", o.Get("held").Status.JobID[0])
	require.Contains(t, o.Condition(o.Phase("held", v1alpha1.PhaseHeld), v1alpha1.ConditionHeld).Message, "let it rest")
	require.Contains(
		t,
		o.Condition(o.Phase("huge", v1alpha1.PhaseHeld), v1alpha1.ConditionHeld).Message,
		"more than 4096 bytes",
	)

	o.as("condor_rm", "-reason", "away with it", o.Get("removed").Status.JobID[0])
	o.as("condor_rm", o.Get("huge").Status.JobID[0])
	removed := o.Phase("removed", v1alpha1.PhaseRemoved)
	require.Contains(t, removed.Status.Failures[0].Message, "away with it")
	o.Phase("huge", v1alpha1.PhaseRemoved)
	o.gone()
}
