package kube

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
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

// kept is what stands in a file of a proc's output, "absent" when there is none.
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

// fetched is the condition OutputFetched, "status reason: message".
func (w *world) fetched(name string) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.job(name).Status.Conditions, v1alpha1.ConditionOutputFetched)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// fetchAgain is what happens when the back-off of a fetch is over.
func (w *world) fetchAgain(name string) {
	w.fetches.Add("default/" + name)
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

func TestTheStreamsHaveOneName(t *testing.T) {
	require.Equal(t, schedd.Stdout, output.Stdout)
	require.Equal(t, schedd.Stderr, output.Stderr)
}

func TestTheOutputOfCompletedJobsIsFetchedAndTheyLeaveTheQueue(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(3)))
	require.Equal(t, "False NotEnded: not every job has ended; the output of each is fetched when it does", w.fetched("one"))
	w.schedd.Leaves("1.1", map[string]string{"plot.txt": "made by the script", schedd.Stderr: "warning\nno such file\n"})
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
	over, err := w.checkRun(t.Context(), "uid-one") // what the callback of the last job asks for
	require.NoError(t, err)
	require.False(t, over)
	w.settle()
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}

func TestWhereNoJobRanToItsEndThereIsNothingToFetch(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.schedd.Remove(t.Context(), schedd.Identity{}, schedd.UIDConstraint("uid-one"), "enough"))
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
	for _, event := range w.told {
		if strings.Contains(event, "Warning Unreachable: the output is not fetched yet") {
			told++
		}
	}
	require.Equal(t, 1, told)
	require.Len(t, w.schedd.Jobs(), 1)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	w.schedd.Down(nil, scheddtest.Transfer)
	w.SecretChanged("default") // or whatever else ends everybody's back-off
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
			// A fetch that was killed leaves its directory.
			dir, err := w.Output.Begin([]int{0})
			require.NoError(t, err)
			w.restart()
			require.NoError(t, w.resumeFetches(t.Context()))
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

func TestWhatLeftTheQueueUnfetchedIsGivenUp(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1, 1)
	w.schedd.Leave(1, 0)
	w.crosscheck()
	require.Equal(t, "False GivenUp: the output of 1 job is here, that of 1 other job cannot be had", w.fetched("one"))
	require.Equal(t, "(no output: the job left the queue before its output was fetched)", w.job("one").Status.Failures[0].Stderr)
	require.Contains(t, w.told, "Warning GivenUp: the output of 1 job cannot be had: the job left the queue before its output was fetched")
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	require.Equal(t, "out of 1.1\n", w.kept("one", 1, 1, output.Stdout))
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
	require.Equal(t, ledger.GivenUp, w.proc("one", 1, 0).Fetched)
}

// unsendable is what a transfer says of a job whose files the schedd fails to send.
func unsendable(proc int, why string) *schedd.TransferError {
	return &schedd.TransferError{Proc: proc, Err: &schedd.Error{Command: "condor_transfer_data", Stderr: "SCHEDD failed to send file(s): reading from file x: " + why}}
}

func TestAJobWhoseFilesCannotBeSentHoldsUpNoOther(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(3)))
	w.completed(1)
	passing := scheddtest.Fault{Err: unsendable(1, "(errno 5) Input/output error")}
	w.schedd.Fail(scheddtest.Transfer, passing, scheddtest.Fault{}, passing)
	w.crosscheck()
	w.later(firstPause)
	w.fetchAgain("one")
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	require.Equal(t, "out of 1.2\n", w.kept("one", 1, 2, output.Stdout))
	require.Contains(t, w.fetched("one"), "Input/output error")
	require.Equal(t, 3, w.schedd.Calls(scheddtest.Transfer))
	w.fetchAgain("one")
	require.Equal(t, 3, w.schedd.Calls(scheddtest.Transfer), "its pause is not over")
	w.later(2 * firstPause)
	w.fetchAgain("one")
	require.Equal(t, "True Fetched: the output of 3 jobs is here", w.fetched("one"))
	require.Empty(t, w.schedd.Jobs())
	require.Empty(t, w.failing.m, "nothing of it is remembered")
}

func TestOutputIsGivenUpOverHoursAndOnlyWhereItIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		why  error
		want string
		left int
	}{
		"what fails for a day stays in the queue": {unsendable(0, "(errno 116) Stale file handle"), "False Retrying: ", 1},
		"what no transfer says a word about, too": {&schedd.Error{Command: "condor_transfer_data", Stderr: "the connection was cut"}, "False Retrying: ", 1},
		"what is gone is given up":                {unsendable(0, "(errno 2) No such file or directory"), "False GivenUp: ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t)
			w.apply(htcjob("one"))
			w.completed(1)
			w.schedd.Down(c.why, scheddtest.Transfer)
			w.crosscheck()
			for range 40 {
				w.later(time.Minute)
				w.fetchAgain("one")
			}
			require.Contains(t, w.fetched("one"), "False Retrying: ")
			require.Len(t, w.schedd.Jobs(), 1)
			require.Less(t, w.schedd.Calls(scheddtest.Transfer), 15, "the pauses grow")
			for range 24 {
				w.later(time.Hour)
				w.fetchAgain("one")
			}
			require.Contains(t, w.fetched("one"), c.want)
			require.Len(t, w.schedd.Jobs(), c.left)
			if c.left == 0 {
				require.Contains(t, strings.Join(w.told, "\n"), `cannot be had: the schedd has no file "x", which is`)
			}
			w.schedd.Down(nil, scheddtest.Transfer)
			w.later(time.Hour)
			w.fetchAgain("one")
			require.Empty(t, w.schedd.Jobs())
			require.Empty(t, w.failing.m)
		})
	}
}

func TestOutputThatLacksFilesIsKeptAfterMinutesAndSaysSo(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1, 3)
	lacking := unsendable(0, "(errno 2) No such file or directory")
	lacking.Lacks = []string{"a", "b"}
	w.schedd.Leaves("1.0", map[string]string{schedd.Stderr: "warning\n"})
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
	require.Contains(t, w.told, "Warning Incomplete: "+lack)
	require.Empty(t, w.schedd.Jobs())
	require.Empty(t, w.failing.m)
}

func TestMissingFilesAreNamedBriefly(t *testing.T) {
	long := strings.Repeat("x", 200)
	require.Equal(t, `of the output of job 7.0 HTCondor did not keep "`+long[:100]+`", "b\n", "c", "d", "e", and 2 more`,
		lackMessage("7.0", []string{long, "b\n", "c", "d", "e", "f", "g"}))
}

func TestABatchThatFailsWithoutANameIsMadeSmaller(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(5)))
	w.completed(1)
	cut := scheddtest.Fault{Err: errBroken}
	w.schedd.Fail(scheddtest.Transfer, cut, cut)
	w.crosscheck()
	w.fetchAgain("one")
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout), "five failed, then two")
	w.fetchAgain("one")
	require.Equal(t, "True Fetched: the output of 5 jobs is here", w.fetched("one"))
	require.Equal(t, 4, w.schedd.Calls(scheddtest.Transfer), "one alone, then the other four")
}

func TestDeletingAnHTCJobForgetsWhatCouldNotBeSent(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.schedd.Down(unsendable(0, "(errno 5) Input/output error"), scheddtest.Transfer)
	w.crosscheck()
	require.NotEmpty(t, w.failing.m)
	w.delete("one")
	w.later(lastPause)
	w.fetchAgain("one")
	require.Empty(t, w.failing.m)
}

func TestTheToolsOwnTroubleToWriteIsNoJobsFault(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	full := &schedd.TransferError{Proc: 0, Err: &schedd.Error{Command: "condor_transfer_data", Stderr: "TOOL |Error: writing to file x: (errno 28) No space left on device"}}
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
	w.KeepFree = 1 << 60
	w.apply(htcjob("one"))
	w.completed(1)
	w.crosscheck()
	require.Contains(t, w.fetched("one"), "False NoSpace: the output is not fetched yet: job 1.0 left 1 MiB, for which the volume has no room beside the ")
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer))
	require.Len(t, w.schedd.Jobs(), 1)
	w.KeepFree = 0
	w.fetchAgain("one")
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}

func TestAFetchIsForWhatFits(t *testing.T) {
	w := newWorldWithOutput(t)
	free, _, err := w.Output.Volume()
	require.NoError(t, err)
	w.KeepFree = free.Bytes - 100<<20
	w.apply(htcjob("one", queueOf(3)))
	w.completed(1)
	for proc, size := range []int64{60 << 20, 200 << 20, 20 << 20} {
		w.schedd.Edit(1, proc, func(j *schedd.Job) { j.BytesSent = size })
	}
	w.crosscheck()
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	require.Equal(t, "absent", w.kept("one", 1, 1, output.Stdout))
	require.Equal(t, "out of 1.2\n", w.kept("one", 1, 2, output.Stdout))
	require.Contains(t, w.fetched("one"), "False NoSpace: the output is not fetched yet: job 1.1 left 201 MiB, for which the volume has no room beside the ")
	require.Len(t, w.schedd.Jobs(), 1)
	require.Zero(t, w.bookings.now(), "nothing stays booked")

	w.KeepFree = 1
	w.fetchAgain("one")
	require.Equal(t, "True Fetched: the output of 3 jobs is here", w.fetched("one"))
}

func TestFetchesUnderWayShareWhatIsFree(t *testing.T) {
	w := newWorldWithOutput(t)
	free, _, err := w.Output.Volume()
	require.NoError(t, err)
	w.KeepFree = free.Bytes - 100<<20
	w.bookings.sum = output.Room{Bytes: 90 << 20}
	w.apply(htcjob("one"))
	w.completed(1)
	w.schedd.Edit(1, 0, func(j *schedd.Job) { j.BytesSent = 20 << 20 })
	w.crosscheck()
	require.Contains(t, w.fetched("one"), "job 1.0 left 21 MiB, for which the volume has no room until other fetches are over")
	w.bookings.sum = output.Room{}
	w.fetchAgain("one")
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}

func TestAFetchThatBringsMoreThanWasReportedIsBrokenOff(t *testing.T) {
	w := newWorldWithOutput(t)
	block := make(chan struct{})
	defer close(block)
	w.apply(htcjob("one"))
	w.completed(1)
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Block: block})
	err := w.guarded(t.Context(), func(ctx context.Context) error {
		w.KeepFree = 1 << 60 // as if it had filled the volume
		return w.Schedd.Transfer(ctx, schedd.Identity{}, schedd.Procs{}, t.TempDir())
	})
	require.ErrorContains(t, err, "a fetch was broken off")
	require.Equal(t, reasonNoSpace, explainFetch(err).reason)
}

func TestAnEarlierAttemptsOutputIsKeptUntilItIsReplaced(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.crosscheck()
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	job := w.job("one").DeepCopy()
	job.Spec.Script.Source, job.Generation = "exit 1\n", 2
	w.write(job)
	w.settle()
	require.EqualValues(t, 2, w.job("one").Status.Attempt)
	require.Contains(t, w.fetched("one"), "False NotEnded")
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	w.completed(2, 1)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.crosscheck()
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	w.schedd.Down(nil, scheddtest.Transfer)
	w.fetchAgain("one")
	require.Equal(t, "out of 2.0\n", w.kept("one", 2, 0, output.Stdout))
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
}

func TestDeletingAnHTCJobDropsItsOutput(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.apply(htcjob("other"))
	w.completed(1)
	w.completed(2)
	w.crosscheck()
	w.delete("one")
	require.Nil(t, w.job("one"))
	require.NoDirExists(t, filepath.Join(w.Output.Root, "default", "one"))
	require.Equal(t, "out of 2.0\n", w.kept("other", 1, 0, output.Stdout))
	left, err := os.ReadDir(filepath.Join(w.Output.Root, ".incoming"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// underWay is a fetch that has brought everything and kept nothing.
func (w *world) underWay(name string) (b batch, dir string) {
	w.t.Helper()
	b, found, err := w.nextBatch(w.t.Context(), "default/"+name)
	require.NoError(w.t, err)
	require.True(w.t, found)
	dir, err = w.Output.Begin([]int{0})
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "0", output.Stdout), []byte("of the older one"), 0o600))
	return b, dir
}

func TestAFetchThatIsUnderWayKeepsNothingOfADeletedHTCJob(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.crosscheck()
	b, dir := w.underWay("one")
	w.delete("one")
	require.Nil(t, w.job("one"))
	require.NoError(t, w.keep(t.Context(), b, dir, []int{0}, nil))
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
}

func TestTheOutputOfAnObjectThatIsGoneMixesWithNobodys(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.crosscheck()
	b, dir := w.underWay("one")
	left := filepath.Join(w.Output.Root, "default", "one", "1", "7")
	require.NoError(t, os.MkdirAll(left, 0o700))

	// Its finalizer is taken away by hand, and another comes under its name: first attempt, again.
	require.NoError(t, w.store.Delete(w.job("one")))
	w.apply(htcjob("one", func(job *v1alpha1.HTCJob) { job.UID = types.UID("uid-two") }))
	require.NoDirExists(t, left)
	require.NoError(t, w.keep(t.Context(), b, dir, []int{0}, nil))
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	w.schedd.Down(nil, scheddtest.Transfer)
	w.completed(2)
	w.crosscheck()
	require.Equal(t, "out of 2.0\n", w.kept("one", 1, 0, output.Stdout))
	w.later(time.Minute)
	require.Equal(t, "out of 2.0\n", w.kept("one", 1, 0, output.Stdout), "what is left of the older one goes without it")
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}

func TestWhatAnOlderHtcdHasSentIsNotFetched(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.Output = output.Store{Root: t.TempDir()}
	w.crosscheck()
	require.NoError(t, w.resumeFetches(t.Context()))
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

func TestTheConditionOfOutput(t *testing.T) {
	run := func(change func(*ledger.Run)) *ledger.Run {
		r := ledger.Run{State: ledger.Submitted, OutputDir: "/out", Confirmed: true}
		change(&r)
		return &r
	}
	as := func(*ledger.Run) {}
	for name, c := range map[string]struct {
		s    situation
		v    view
		want string
	}{
		"nothing was sent":               {situation{}, view{}, ""},
		"its output is not fetched":      {situation{run: run(func(r *ledger.Run) { r.OutputDir = "" })}, view{}, ""},
		"it was refused":                 {situation{run: run(func(r *ledger.Run) { r.State = ledger.Refused })}, view{}, ""},
		"some run":                       {situation{run: run(as), counts: ledger.Counts{Active: 1}, output: ledger.OutputCounts{Completed: 1}}, view{}, "False NotEnded"},
		"some run, and there is blocker": {situation{run: run(as), counts: ledger.Counts{Active: 1}, output: ledger.OutputCounts{Completed: 1, Waiting: 1}}, view{unfetched: &blocker{reason: "NoSpace"}}, "False NoSpace"},
		"all ended, says a callback":     {situation{run: run(func(r *ledger.Run) { r.Confirmed = false })}, view{}, "False Fetching"},
		"all ended, some are fetched":    {situation{run: run(as), output: ledger.OutputCounts{Completed: 2, Waiting: 1}}, view{}, "False Fetching"},
		"all are fetched":                {situation{run: run(as), output: ledger.OutputCounts{Completed: 2}}, view{}, "True Fetched"},
		"blocker that is over":           {situation{run: run(as), output: ledger.OutputCounts{Completed: 2}}, view{unfetched: &blocker{reason: "NoSpace"}}, "True Fetched"},
		"one lacks a file":               {situation{run: run(as), output: ledger.OutputCounts{Completed: 2, Incomplete: 1}}, view{}, "False Incomplete"},
		"some are given up":              {situation{run: run(as), output: ledger.OutputCounts{Completed: 2, GivenUp: 1}}, view{}, "False GivenUp"},
		"none ran to its end":            {situation{run: run(as)}, view{}, "True NothingToFetch"},
		"the ledger was lost":            {situation{run: run(func(r *ledger.Run) { r.Deferred = true })}, view{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			outputCondition(func(kind string, is metav1.ConditionStatus, reason, _ string) {
				require.Equal(t, v1alpha1.ConditionOutputFetched, kind)
				got = string(is) + " " + reason
			}, c.s, c.v)
			require.Equal(t, c.want, got)
		})
	}
}
