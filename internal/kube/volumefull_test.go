package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestAFullVolumeIsAReasonOfItsOwn(t *testing.T) {
	w := newWorld(t)
	for name, err := range map[string]error{
		"no space":   w.stageError(fmt.Errorf("stage job: %w", unix.ENOSPC)),
		"quota":      w.stageError(fmt.Errorf("stage job: %w", unix.EDQUOT)),
		"the ledger": fmt.Errorf("record intent: %w", fmt.Errorf("%w, 0 KiB are free in /data", ledger.ErrFull)),
	} {
		told := explain(err)
		require.Equal(t, v1alpha1.ConditionSubmitted, told.condition, name)
		require.Equal(t, "NoSpace", told.reason, name)
		require.Contains(t, told.message, "are free", name)
		require.Contains(t, told.message, "delete HTCJobs", name)
	}
	require.Equal(t, "Retrying", explain(w.stageError(unix.EACCES)).reason)
}

func TestWhatIsInTheWayOfAFetchIsExplained(t *testing.T) {
	for reason, err := range map[string]error{
		"NoSpace":      &output.NoSpaceError{Message: "a fetch was broken off"},
		"OtherAccount": backend.OtherAccount("2 jobs of another account"),
	} {
		told := explainFetch(fmt.Errorf("fetch: %w", err))
		require.Equal(t, v1alpha1.ConditionOutputFetched, told.condition)
		require.Equal(t, reason, told.reason)
		require.Equal(t, "the output is not fetched yet: "+err.Error(), told.message)
	}
}

func TestFilesThatCannotBeWrittenAreToldOfOnceAndNotLookedForInHTCondor(t *testing.T) {
	w := newWorld(t)
	staging := w.Staging
	w.Staging = filepath.Join(staging, "file", "below") // of what is not a directory
	require.NoError(t, os.WriteFile(filepath.Join(staging, "file"), nil, 0o600))
	w.apply(htcjob("waiting"))
	for range 30 {
		w.later(10 * time.Second)
	}
	events := strings.Count(strings.Join(w.told, "\n"), "Warning Retrying")
	require.Equal(t, 1, events, "%q", w.told)
	require.Zero(t, w.schedd.Calls(scheddtest.Queue), "nothing of it was sent")

	w.Staging = staging
	w.later(2 * time.Minute)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("waiting").Status.Phase)
	require.Len(t, w.schedd.Jobs(), 1)
}

func TestTheUserHearsOfTroubleOnceHoweverItsNumbersChange(t *testing.T) {
	var t1 blockers
	full := func(free int) blocker {
		return blocker{reason: "NoSpace", message: fmt.Sprintf("%d KiB are free", free)}
	}
	require.True(t, t1.set("a/b", full(8)))
	require.False(t, t1.set("a/b", full(4)))
	t1.wait("a/b", blocker{reason: "AskingSchedd", message: "the schedd is asked"})
	require.False(t, t1.set("a/b", full(0)))
	require.True(t, t1.set("a/b", blocker{reason: "Unreachable", message: "it does not answer"}))
	t1.clear("a/b")
	require.True(t, t1.set("a/b", full(0)))
}

func TestTheReasonOfAStatusIsWhatKeepsItFromGettingOn(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	away := is(v1alpha1.ConditionBackendReachable, no, "Unreachable")
	for name, c := range map[string]struct {
		phase      v1alpha1.Phase
		conditions []metav1.Condition
		reason     string
	}{
		"one that waits":         {v1alpha1.PhasePending, []metav1.Condition{is(v1alpha1.ConditionSubmitted, no, "Waiting")}, "Waiting"},
		"one that is looked for": {v1alpha1.PhaseSubmitting, []metav1.Condition{is(v1alpha1.ConditionSubmitted, unknown, "AskingSchedd")}, "AskingSchedd"},
		"one without a ticket":   {v1alpha1.PhasePending, []metav1.Condition{is(v1alpha1.ConditionSubmitted, no, "BadPassword"), is(v1alpha1.ConditionCredentials, no, "BadPassword"), away}, "BadPassword"},
		"one without a schedd":   {v1alpha1.PhaseRunning, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), away}, "Unreachable"},
		"one that runs":          {v1alpha1.PhaseRunning, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), is(v1alpha1.ConditionSuspended, no, "NotSuspended")}, ""},
		"one on hold":            {v1alpha1.PhaseHeld, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), is(v1alpha1.ConditionHeld, yes, "Held")}, "Held"},
		"one that is suspended":  {v1alpha1.PhaseSuspended, []metav1.Condition{is(v1alpha1.ConditionSubmitted, no, "Suspended"), is(v1alpha1.ConditionSuspended, yes, "Suspended"), away}, "Suspended"},
		"one that is being so":   {v1alpha1.PhaseRunning, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), is(v1alpha1.ConditionSuspended, no, "Stopping")}, "Stopping"},
		"one that has failed":    {v1alpha1.PhaseFailed, []metav1.Condition{is(v1alpha1.ConditionStalled, yes, "ExitCode"), away}, "ExitCode"},
		"one that has succeeded": {v1alpha1.PhaseSucceeded, []metav1.Condition{is(v1alpha1.ConditionSubmitted, yes, "Submitted"), away}, ""},
	} {
		require.Equal(t, c.reason, reasonOf(v1alpha1.HTCJobStatus{Phase: c.phase, Conditions: c.conditions}), name)
	}
}

func TestWhatWasSaidOfASecretDoesNotOutlastIt(t *testing.T) {
	w := newWorld(t)
	w.denied = &backend.CredentialError{Reason: "BadPassword", Message: "wrong"}
	require.Equal(t, "BadPassword", w.apply(htcjob("waiting")).Status.Reason)
	w.denied = nil
	w.schedd.Down(errUnreachable)
	w.SecretChanged("default")
	w.settle()
	w.later(2 * time.Minute)
	require.Equal(t, "Unreachable", w.job("waiting").Status.Reason)
	require.Equal(t, metav1.ConditionTrue, condition(w.job("waiting"), v1alpha1.ConditionCredentials).Status)
}
