package job

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

func TestAFullVolumeIsAReasonOfItsOwn(t *testing.T) {
	w := newWorld(t)
	for name, err := range map[string]error{
		"no space":   w.sender.StageError(fmt.Errorf("stage job: %w", unix.ENOSPC)),
		"quota":      w.sender.StageError(fmt.Errorf("stage job: %w", unix.EDQUOT)),
		"the ledger": fmt.Errorf("record intent: %w", fmt.Errorf("%w, 0 KiB are free in /data", ledger.ErrFull)),
	} {
		told := reconciler.Explain(err)
		require.Equal(t, v1alpha1.ConditionSubmitted, told.Condition, name)
		require.Equal(t, "NoSpace", told.Reason, name)
		require.Contains(t, told.Message, "are free", name)
		require.Contains(t, told.Message, "delete HTCJobs", name)
	}
	require.Equal(t, "Retrying", reconciler.Explain(w.sender.StageError(unix.EACCES)).Reason)
	for _, err := range []error{ledger.ErrLost, ledger.ErrCorrupt} { // htcd begins again
		require.Equal(t, "LedgerUnavailable", reconciler.Explain(fmt.Errorf("record intent: %w", err)).Reason)
	}
}

// unwritable is a ledger that cannot be written while there is an error.
type unwritable struct {
	reconciler.Ledger
	err error
}

func (l *unwritable) Write(ctx context.Context, fn func(*ledger.Tx) error) error {
	if l.err != nil {
		return l.err
	}
	return l.Ledger.Write(ctx, fn)
}

func TestWhatWaitsForTheLedgerGoesOnAtOnceWhenItCanBeWrittenAgain(t *testing.T) {
	for reason, err := range map[string]error{"NoSpace": ledger.ErrFull, "LedgerUnavailable": ledger.ErrLost} {
		t.Run(reason, func(t *testing.T) {
			book := &unwritable{err: err}
			w := newWorld(t, func(o *Options) { book.Ledger, o.Ledger = o.Ledger, book })
			w.apply(htcjob("waiting"))
			for range 5 {
				w.later(time.Minute)
			}
			require.Equal(t, reason, w.job("waiting").Status.Reason)
			book.err = nil
			w.LedgerBack()
			w.settle()
			w.later(2 * recovery.AbsentTwice) // its finalizer says that something may have been sent
			require.Equal(t, v1alpha1.PhaseIdle, w.job("waiting").Status.Phase)
		})
	}
}

func TestWhatIsInTheWayOfAFetchIsExplained(t *testing.T) {
	for reason, err := range map[string]error{
		"NoSpace":      &output.NoSpaceError{Message: "a fetch was broken off"},
		"OtherAccount": backend.OtherAccount("2 jobs of another account"),
	} {
		told := explainFetch(fmt.Errorf("fetch: %w", err))
		require.Equal(t, v1alpha1.ConditionOutputFetched, told.Condition)
		require.Equal(t, reason, told.Reason)
		require.Equal(t, "the output is not fetched yet: "+err.Error(), told.Message)
	}
}

func TestFilesThatCannotBeWrittenAreToldOfOnceAndNotLookedForInHTCondor(t *testing.T) {
	w := newWorld(t)
	staging := w.Staging
	w.Staging = filepath.Join(staging, "file", "below") // below a file, so that it cannot be created
	require.NoError(t, os.WriteFile(filepath.Join(staging, "file"), nil, 0o600))
	w.apply(htcjob("waiting"))
	for range 30 {
		w.later(10 * time.Second)
	}
	events := strings.Count(strings.Join(w.events, "\n"), "Warning Retrying")
	require.Equal(t, 1, events, "%q", w.events)
	require.Zero(t, w.schedd.Calls(scheddtest.Queue), "nothing of it was sent")

	w.Staging = staging
	w.later(2 * time.Minute)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("waiting").Status.Phase)
	require.Len(t, w.schedd.Jobs(), 1)
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

func TestWhatIsStagedInPartIsRemoved(t *testing.T) {
	w := newWorld(t)
	run := ledger.Run{TempDir: filepath.Join(w.Staging, "uid-1")}
	require.NoError(t, os.MkdirAll(filepath.Join(run.TempDir, "input"), 0o700))
	files := []submit.File{
		{Name: "script", Mode: 0o600, Content: "exit 0\n"},
		{Name: "sender", Mode: 0o700, From: "/nowhere"},
	}
	err := w.sender.Stage(run, submit.Sandbox{Procs: 1, Files: files})
	require.ErrorContains(t, err, "write the files to be submitted: stage sender")
	require.NoDirExists(t, run.TempDir)
}
