package job

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// completed runs every job of a cluster to its end, with the exit codes given for the first ones.
func (w *world) completed(cluster int, codes ...int) {
	w.schedd.Run(cluster, -1)
	w.schedd.Complete(cluster, -1, 0)
	for proc, code := range codes {
		w.schedd.Complete(cluster, proc, code)
	}
}

// completedUnfetched is completed where HTCondor's word is known, and the output is still to be fetched.
func (w *world) completedUnfetched(cluster int, codes ...int) {
	w.t.Helper()
	w.completed(cluster, codes...)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.crosscheck()
	w.schedd.Down(nil, scheddtest.Transfer)
}

// kept returns the content of a file of a proc's output, "absent" if there is none.
func (w *world) kept(name string, attempt, proc int, file string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Output.Root, "default", name, itoa(attempt), itoa(proc), file))
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	require.NoError(w.t, err)
	return string(text)
}

func itoa(n int) string { return string(rune('0' + n)) }

// fetched returns the condition OutputFetched as "status reason: message".
func (w *world) fetched(name string) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.job(name).Status.Conditions, v1alpha1.ConditionOutputFetched)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// fetchAgain does what follows the back-off of a fetch.
func (w *world) fetchAgain(name string) {
	w.fetcher.Retry("default/" + name)
	w.settle()
}

func (w *world) proc(name string, attempt, proc int) (p ledger.Proc) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		p, err = tx.Proc("uid-"+name, attempt, proc)
		return err
	}))
	return p
}

func TestTheOutputOfCompletedJobsIsFetchedAndTheyLeaveTheQueue(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(3)))
	require.Equal(
		t,
		"False NotEnded: not every job has ended; the output of each is fetched when it does",
		w.fetched("one"),
	)
	w.schedd.Leaves(
		"1.1",
		map[string]string{"plot.txt": "made by the script", condor.Stderr: "warning\nno such file\n"},
	)
	w.schedd.Run(1, -1)
	w.schedd.Complete(1, 1, 3)
	w.crosscheck()
	require.Equal(t, "out of 1.1\n", w.kept("one", 1, 1, output.Stdout), "the others still run")
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	require.Len(t, w.schedd.Jobs(), 2)
	require.Len(t, w.schedd.Gone(), 1)

	w.completed(1)
	w.crosscheck()
	require.Equal(t, "True Fetched: the output of 3 jobs is here", w.fetched("one"))
	require.Equal(t, "made by the script", w.kept("one", 1, 1, "plot.txt"))
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	require.Equal(t, "out of 1.2\n", w.kept("one", 1, 2, output.Stdout))
	require.Empty(t, w.schedd.Jobs())
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Transfer), "those that end together are fetched together")
	status := w.job("one").Status
	require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
	require.Len(t, status.Failures, 1)
	require.Equal(t, "warning\nno such file", status.Failures[0].Stderr)
	require.Empty(t, w.proc("one", 1, 0).Stderr, "only of those that failed")
	left, err := os.ReadDir(filepath.Join(w.Output.Root, ".incoming"))
	require.NoError(t, err)
	require.Empty(t, left)

	w.crosscheck()
	w.later(time.Hour)
	require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Transfer))
}

func TestACallbackIsNotEnoughToFetch(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.schedd.Run(1, 0)
	require.NoError(t, w.callback("one", 0, 0))
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer), "HTCondor may still bring its files back from the node")
	require.Contains(t, w.fetched("one"), "False Fetching")
	w.schedd.Complete(1, 0, 0)
	over, err := w.checkRun(t.Context(), "uid-one") // as the last job's callback triggers it
	require.NoError(t, err)
	require.False(t, over)
	w.settle()
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}

func TestWhereNoJobRanToItsEndThereIsNothingToFetch(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	require.NoError(
		t,
		scheddtest.Err(
			w.schedd.Change(
				t.Context(),
				schedd.Identity{},
				schedd.Remove{Where: condor.UIDConstraint("uid-one"), Reason: "enough"},
			),
		),
	)
	w.crosscheck()
	require.Equal(t, "True NothingToFetch: no job ran to its end", w.fetched("one"))
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer))
}

func TestAFetchThatFailsIsToldOnceAndDoneAgain(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.crosscheck()
	require.Contains(t, w.fetched("one"), "False Unreachable: the output is not fetched yet: ")
	w.fetchAgain("one")
	told := 0
	for _, event := range w.events {
		if strings.Contains(event, "Warning Unreachable: the output is not fetched yet") {
			told++
		}
	}
	require.Equal(t, 1, told)
	require.Len(t, w.schedd.Jobs(), 1)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	w.schedd.Down(nil, scheddtest.Transfer)
	w.SecretChanged("default") // or anything else that ends every back-off
	w.settle()
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
	require.Empty(t, w.schedd.Jobs())
}

func TestWhateverIsBrokenOffIsDoneAgain(t *testing.T) {
	for name, c := range map[string]struct {
		command   string
		fault     scheddtest.Fault
		transfers int
	}{
		"before anything came":                   {scheddtest.Transfer, scheddtest.Fault{Err: errBroken}, 2},
		"when all was there, and not kept":       {scheddtest.Transfer, scheddtest.Fault{Err: errBroken, After: true}, 2},
		"when it was kept, and not released":     {scheddtest.Release, scheddtest.Fault{Err: errBroken}, 1},
		"when it was released, and nobody knew":  {scheddtest.Release, scheddtest.Fault{Err: errBroken, After: true}, 1},
		"not at all, and the queue took no note": {scheddtest.Queue, scheddtest.Fault{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t)
			w.apply(htcjob("one", queueOf(2)))
			w.completed(1)
			w.schedd.Fail(c.command, c.fault)
			w.crosscheck()
			// A killed fetch leaves its directory.
			dir, err := w.Output.Begin([]int{0})
			require.NoError(t, err)
			w.restart()
			require.NoError(t, w.fetcher.Resume(t.Context()))
			w.settle()
			w.crosscheck()
			require.Equal(t, "True Fetched: the output of 2 jobs is here", w.fetched("one"))
			require.Equal(t, "out of 1.1\n", w.kept("one", 1, 1, output.Stdout))
			require.Empty(t, w.schedd.Jobs())
			require.Equal(t, c.transfers, w.schedd.Calls(scheddtest.Transfer))
			require.NoDirExists(t, dir)
		})
	}
}

func TestAReleaseThatFailedIsDoneWithoutARestart(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.schedd.Fail(scheddtest.Release, scheddtest.Fault{Err: errBroken})
	w.crosscheck()
	require.Len(t, w.schedd.Jobs(), 1)
	require.Equal(t, ledger.IsFetched, w.proc("one", 1, 0).Fetched)
	w.fetchAgain("one")
	require.Empty(t, w.schedd.Jobs())
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Transfer))
}

func TestOutputIsNotGivenUpWhileTheScheddShowsAnotherQueue(t *testing.T) {
	for name, other := range otherQueues {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t)
			w.apply(htcjob("one"))
			w.completedUnfetched(1)
			sent := w.schedd.Jobs()
			w.clock = w.clock.Add(time.Second)
			other(w.schedd)
			for range 3 {
				w.clock = w.clock.Add(time.Minute)
				w.fetchAgain("one")
			}
			require.Contains(t, w.fetched("one"), "it has another queue than when the attempt began")
			w.schedd.Restore(sent)
			w.clock = w.clock.Add(time.Minute)
			w.fetchAgain("one")
			require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
		})
	}
}

func TestWhatLeftTheQueueUnfetchedIsGivenUp(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1, 1)
	w.schedd.Leave(1, 0)
	w.crosscheck()
	require.Equal(t, ledger.NotFetched, w.proc("one", 1, 0).Fetched, "two answers say that it is gone")
	w.clock = w.clock.Add(recovery.AbsentTwice)
	w.fetchAgain("one")
	require.Equal(
		t,
		"False GivenUp: the output of 1 job is here, the output of 1 other job could not be fetched",
		w.fetched("one"),
	)
	require.Equal(
		t,
		"(no output: the job left the queue before its output was fetched)",
		w.job("one").Status.Failures[0].Stderr,
	)
	require.Contains(
		t,
		w.events,
		"Warning GivenUp: the output of 1 job could not be fetched: the job left the queue before its output was fetched",
	)
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	require.Equal(t, "out of 1.1\n", w.kept("one", 1, 1, output.Stdout))
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
	require.Equal(t, ledger.GivenUp, w.proc("one", 1, 0).Fetched)
}

// unsendable returns the error of a transfer for a job whose files the schedd fails to send.
func unsendable(proc int, why string) *schedd.TransferError {
	return &schedd.TransferError{
		Proc: proc,
		Err: &condor.Error{
			Command: "condor_transfer_data",
			Stderr:  "SCHEDD failed to send file(s): reading from file x: " + why,
		},
	}
}

func TestOutputThatLacksFilesIsKeptAfterMinutesAndSaysSo(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1, 3)
	lacking := unsendable(0, "(errno 2) No such file or directory")
	lacking.Lacks = []string{"a", "b"}
	w.schedd.Leaves("1.0", map[string]string{condor.Stderr: "warning\n"})
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Err: lacking})
	w.crosscheck()
	require.Equal(t, "out of 1.1\n", w.kept("one", 1, 1, output.Stdout), "it holds up no other")
	for range 9 {
		w.later(time.Minute)
		w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Err: lacking, After: true})
		w.fetchAgain("one")
	}
	require.Contains(t, w.fetched("one"), "False Retrying: ")
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	w.later(10 * time.Minute)
	w.fetchAgain("one")
	const lack = `of the output of job 1.0 HTCondor did not keep "a", "b"`
	require.Equal(t, "False Incomplete: the output of 2 jobs is here, 1 incomplete; "+lack, w.fetched("one"))
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	require.Equal(t, "warning\n("+lack+")", w.job("one").Status.Failures[0].Stderr)
	require.Contains(t, w.events, "Warning Incomplete: "+lack)
	require.Empty(t, w.schedd.Jobs())
}

func TestTheToolsOwnTroubleToWriteIsNoJobsFault(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	full := &schedd.TransferError{
		Proc: 0,
		Err: &condor.Error{
			Command: "condor_transfer_data",
			Stderr:  "TOOL |Error: writing to file x: (errno 28) No space left on device",
		},
	}
	w.schedd.Down(full, scheddtest.Transfer)
	w.crosscheck()
	for range 6 {
		w.fetchAgain("one")
	}
	require.Contains(t, w.fetched("one"), "False NoSpace: ")
	w.schedd.Down(nil, scheddtest.Transfer)
	w.fetchAgain("one")
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}

func TestAVolumeThatIsNearlyFullGetsNoOutput(t *testing.T) {
	w := newWorldWithOutput(t)
	w.Shares.Reserve = func(output.Room) output.Room { return output.Room{Bytes: 1 << 60} }
	w.apply(htcjob("one"))
	w.completed(1)
	w.crosscheck()
	require.Contains(
		t,
		w.fetched("one"),
		"False NoSpace: the output is not fetched yet: job 1.0 left 1 MiB, for which the volume has no room beside the ",
	)
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer))
	require.Len(t, w.schedd.Jobs(), 1)
	w.Shares.Reserve = func(output.Room) output.Room { return output.Room{} }
	w.restart()
	w.fetchAgain("one")
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}

func TestWhatAnOlderHtcdHasSentIsNotFetched(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.Output = output.Store{Root: t.TempDir()}
	w.restart()
	w.crosscheck()
	require.NoError(t, w.fetcher.Resume(t.Context()))
	w.fetchAgain("one")
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer))
	require.Empty(t, w.fetched("one"))
}

func TestWhatIsInItsPlaceIsNotFetchedAgain(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1)
	w.schedd.Leave(1, 0) // fetched by an htcd whose ledger was lost
	dir, err := w.Output.Begin([]int{0})
	require.NoError(t, err)
	require.NoError(t, w.Output.Keep(dir, output.Attempt{Namespace: "default", Name: "one", Number: 1}, 0))
	w.crosscheck()
	require.Equal(t, "True Fetched: the output of 2 jobs is here", w.fetched("one"))
}

func TestOutputIsFetchedAsWhoSentTheJob(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("common"))
	w.accounts["default"] = "physicist"
	w.apply(htcjob("own"))
	w.completed(1)
	w.completed(2)
	w.crosscheck()
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("common"))
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("own"))
	require.Empty(t, w.schedd.Jobs())
}

func TestTheOutputOfAJobThatRunsAgainReplacesTheFormer(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(2)))
	again := w.schedd.Jobs()[0]
	w.schedd.Leaves("1.0", map[string]string{output.Stdout: "first"})
	w.schedd.Complete(1, 0, 0)
	w.crosscheck()
	require.Equal(t, "first", w.kept("one", 1, 0, output.Stdout))

	again.Status = condor.Running
	w.schedd.Put(again)
	w.reconcile(ReconcileOptions{}) // nobody else asks about what HTCondor has confirmed
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	w.schedd.Leaves("1.0", map[string]string{output.Stdout: "second"})
	w.schedd.Complete(1, 0, 0)
	w.crosscheck()
	require.Equal(t, "second", w.kept("one", 1, 0, output.Stdout))
	require.Len(t, w.schedd.Jobs(), 1, "it has left the queue")
}
