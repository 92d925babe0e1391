package workflow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// rerun asks for another attempt.
func (w *world) rerun(name, word string) {
	flow := w.flow(name).DeepCopy()
	metav1.SetMetaDataAnnotation(&flow.ObjectMeta, v1alpha1.RerunAnnotation, word)
	require.NoError(w.t, w.store.Update(flow))
	w.later(time.Minute)
}

func TestRerunsLeaveABoundedNumberOfAttempts(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("one"))
	const reruns = 25
	for i := range reruns {
		require.NoError(
			t,
			os.MkdirAll(filepath.Join(w.Output.Root, "default", "one", fmt.Sprint(i+1), "a", "job_0"), 0o700),
		)
		w.ends(i + 1)
		w.rerun("one", fmt.Sprint("word", i))
	}
	w.ends(reruns + 1)
	status := w.flow("one").Status
	require.Equal(t, int32(reruns+1), status.Attempt)
	require.Equal(t, v1alpha1.PhaseSucceeded, status.Phase)
	require.Len(t, w.runs("one"), sending.KeptAttempts+1)
	dirs, err := os.ReadDir(filepath.Join(w.Output.Root, "default", "one"))
	require.NoError(t, err)
	require.Len(t, dirs, 1, "what the last one had is replaced by its own only when there is some")
	require.Equal(t, fmt.Sprint(reruns), dirs[0].Name())
	w.restart()
	w.later(time.Minute)
	require.Equal(t, int32(reruns+1), w.flow("one").Status.Attempt)
}

func TestWhatMayBeResumedStaysInTheLedger(t *testing.T) {
	w := newWorld(t)
	flow := oneStep("one")
	flow.Spec.Resume = v1alpha1.ResumeFromFailure
	w.apply(flow)
	w.ends(1)
	for i := range 2 * sending.KeptAttempts {
		flow := w.flow("one").DeepCopy()
		flow.Generation++
		flow.Spec.Steps[0].Job.HTCOpts = fmt.Sprintf("no_such_command = %d", i)
		require.NoError(t, w.store.Update(flow))
		w.later(time.Minute)
	}
	require.Equal(t, 1, w.runs("one")[0].Attempt)
}

func TestADAGWhoseFilesNeverArrivedIsSentAgainInItsPlace(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("one"))
	w.schedd.Complete(1, 0, 0)
	for len(w.runs("one")) < 2 {
		require.NoError(t, w.Crosscheck(t.Context()))
		w.later(time.Minute)
	}
	w.schedd.Edit(2, 0, func(j *condor.Job) {
		j.LastStatus, j.Status, j.RemoveReason, j.StageInFinish = condor.Held, condor.Removed, "Staging of job files failed", 0
	})
	w.schedd.Leave(2, 0)
	for range 3 {
		require.NoError(t, w.Crosscheck(t.Context()))
		w.later(time.Minute)
	}
	status := w.flow("one").Status
	require.Equal(t, []string{"1.0", "3.0"}, status.JobID)
	require.Equal(t, int32(1), status.Attempt)
	w.ends(3)
	status = w.flow("one").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 3, Done: 3}, status.Nodes)
}

func TestLeftoversOfFetchesAreRemovedAtTheStart(t *testing.T) {
	w := newWorld(t)
	left := filepath.Join(w.Output.Root, ".incoming", "fetch-123", "0")
	require.NoError(t, os.MkdirAll(left, 0o700))
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- w.Run(ctx) }()
	require.Eventually(
		t,
		func() bool { _, err := os.Stat(left); return os.IsNotExist(err) },
		10*time.Second,
		time.Millisecond,
	)
	stop()
	require.NoError(t, <-ran)
}
