package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestANodeThatHTCondorHoldsShowsItsReturnCodeAndStandardError(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "scan", `
  steps:
  - name: stuck
    job: {script: {image: centos, command: sh, source: "echo why >&2; exit 5"}, htcopts: "on_exit_hold = ExitCode == 5\n"}
`)
	explained := func(w *v1alpha1.HTCWorkflow) bool {
		held := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionHeld)
		return w.Status.Nodes.Held == 1 && held != nil &&
			strings.Contains(held.Message, "its script had ended before, with exit code 5") &&
			strings.Contains(held.Message, "The end of its standard error:\nwhy")
	}
	w := f.until("held", explained)
	node := fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID)
	_, err := f.Lab.Run(t.Context(), "condor_release", "-constraint", node)
	require.NoError(t, err)
	f.Eventually(
		func() bool { return len(f.Condor("condor_q", node+" && JobStatus == 5 && NumHolds >= 2")) == 1 },
		func() string { return fmt.Sprint(f.Condor("condor_q", node, "JobStatus", "NumHolds", "HoldReason")) },
	)
	f.until("held again", explained)
	_, err = f.Lab.Run(t.Context(), "condor_rm", "-constraint", node)
	require.NoError(t, err)
	w = f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Len(t, w.Status.Failures, 1)
	require.Equal(t, "why", w.Status.Failures[0].Stderr)
	f.gone(w)
}
