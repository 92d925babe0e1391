package workflow

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

func oneStep(name string) *v1alpha1.HTCWorkflow {
	flow := newWorkflow(name)
	flow.Spec.Steps = flow.Spec.Steps[:1]
	return flow
}

// leave lets fetches use this many MiB of the volume.
func (w *world) leave(mebibytes int64) {
	size := output.Room{Bytes: 1 << 30, Files: 1 << 20}
	w.Shares.Volume = func() (free, all output.Room, err error) { return size, size, nil }
	w.Shares.Reserve = func(output.Room) output.Room { return output.Room{Bytes: size.Bytes - mebibytes<<20} }
}

func TestOutputIsFetchedWhenThereIsRoomForIt(t *testing.T) {
	w := newWorld(t)
	w.leave(0)
	w.apply(oneStep("flow"))
	w.schedd.Leaves("1.0", map[string]string{
		"n/0/.own-0": "job_0 ", "n/0/_condor_stdout": "first", "n/1/.own-1": "job_1 ", "n/1/_condor_stdout": "second",
		"n/1/.htcd-pull/0/x": "handed on",
	})
	w.ends(1)
	reason, message := w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Equal(t, sending.ReasonNoSpace, reason)
	require.Contains(t, message, "beside the 1024 MiB")
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer))

	w.leave(100)
	w.fetches.Add("default/flow")
	w.later(time.Minute)
	reason, _ = w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Equal(t, "Fetched", reason)
	text, err := os.ReadFile(filepath.Join(w.Output.Root, "default", "flow", "1", "a", "job_1", "_condor_stdout"))
	require.NoError(t, err)
	require.Equal(t, "second", string(text))
	require.NoDirExists(t, filepath.Join(w.Output.Root, "default", "flow", "1", "a", "job_1", ".htcd-pull"))
}

func TestWhatWaitsForTheLedgerGoesOnAtOnceWhenItCanBeWrittenAgain(t *testing.T) {
	w := newWorld(t)
	size := output.Room{Bytes: 1 << 30, Files: 1 << 20}
	w.Staged.Volume = func() (free, all output.Room, err error) { return output.Room{}, size, nil }
	w.apply(oneStep("flow"))
	reason, _ := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, sending.ReasonNoSpace, reason)
	w.Staged.Volume = func() (free, all output.Room, err error) { return size, size, nil }
	w.LedgerBack()
	w.settle()
	require.Equal(t, []string{"1.0"}, w.flow("flow").Status.JobID)

	w.leave(0)
	w.schedd.Leaves("1.0", map[string]string{"n/0/.own-0": "job_0 ", "n/0/_condor_stdout": "first"})
	w.ends(1)
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer))
	w.leave(100)
	w.LedgerBack()
	w.settle()
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Transfer))
}

// filling is a schedd whose transfers fill the volume.
type filling struct {
	backend.Schedd
	full *atomic.Bool
}

func (f filling) Transfer(ctx context.Context, _ schedd.Identity, _ schedd.Procs, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "0", "much"), make([]byte, 5<<20), 0o600); err != nil {
		return err
	}
	f.full.Store(true)
	<-ctx.Done()
	return ctx.Err()
}

func TestAFetchThatTakesTooMuchIsBrokenOffAndBeginsAgainWithMoreRoom(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	var full atomic.Bool
	size := output.Room{Bytes: 1 << 30, Files: 1 << 20}
	w.leave(4)
	w.Shares.Volume = func() (free, all output.Room, err error) {
		if full.Load() {
			return output.Room{}, size, nil
		}
		return size, size, nil
	}
	works := w.Controller.Schedd
	w.Controller.Schedd = filling{works, &full}
	w.ends(1)
	_, message := w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Contains(t, message, "DAG 1.0 left 6 MiB in ")

	w.Controller.Schedd = works
	for _, c := range []struct{ mebibytes, calls int }{{4, 0}, {5, 0}, {6, 1}} {
		w.leave(int64(c.mebibytes * 4 / 3))
		w.fetches.Add("default/flow")
		w.later(time.Minute)
		require.Equal(t, c.calls, w.schedd.Calls(scheddtest.Transfer), c.mebibytes)
	}
}
