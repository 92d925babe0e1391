package fetch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestTheStreamsHaveOneName(t *testing.T) {
	require.Equal(t, condor.Stdout, output.Stdout)
	require.Equal(t, condor.Stderr, output.Stderr)
}

// unsendable returns a transfer's error for a job whose files the schedd fails to send.
func unsendable(proc int, why string) *schedd.TransferError {
	return &schedd.TransferError{
		Proc: proc,
		Err: &condor.Error{
			Command: "condor_transfer_data",
			Stderr:  "SCHEDD failed to send file(s): reading from file x: " + why,
		},
	}
}

// tries is an Observer that hears of each fetch.
type tries struct {
	*world
	of chan string
}

func (t tries) Tried(key string, _ error) { t.of <- key }

func TestANamespaceOfWhichNothingIsFetchedDoesNotWaitForOthers(t *testing.T) {
	w, letGo, over := newWorld(t), make(chan struct{}), make(chan struct{})
	tried := tries{w, make(chan string, 9)}
	w.Observer = tried
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Block: letGo})
	go func() { w.Run(t.Context()); close(over) }()
	for _, name := range []string{"first", "second"} {
		w.Add(w.completedIn("slow", name, 1))
	}
	require.Eventually(t, func() bool {
		return w.schedd.Calls(scheddtest.Transfer) == 1 && w.Waiting() == 1
	}, time.Minute, time.Millisecond)
	w.Add(w.completedIn("quick", "one", 1))
	require.Equal(t, "quick/one", <-tried.of)
	close(letGo)
	w.Queue.ShutDown()
	<-over
}

func TestAJobWhoseFilesCannotBeSentHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	run := w.completed("one", 3)
	passing := scheddtest.Fault{Err: unsendable(1, "(errno 5) Input/output error")}
	w.schedd.Fail(scheddtest.Transfer, passing, scheddtest.Fault{}, passing)
	w.fetch("one")
	w.clock = w.clock.Add(firstPause)
	w.fetch("one")
	require.Equal(t, "out of 1.0\n", w.kept(run, 0))
	require.Equal(t, "out of 1.2\n", w.kept(run, 2))
	require.ErrorContains(t, w.inTheWay, "Input/output error")
	require.Equal(t, 3, w.schedd.Calls(scheddtest.Transfer))
	w.fetch("one")
	require.Equal(t, 3, w.schedd.Calls(scheddtest.Transfer), "its pause is not over")
	w.clock = w.clock.Add(2 * firstPause)
	w.fetch("one")
	require.NoError(t, w.inTheWay)
	require.Equal(t, ledger.OutputCounts{Completed: 3}, w.counts(run))
	require.Empty(t, w.schedd.Jobs())
	require.Empty(t, w.pauses.m, "nothing of it is remembered")
}

func TestOutputIsGivenUpOverHoursAndOnlyWhereItIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		why  error
		want ledger.OutputCounts
		left int
	}{
		"what fails for a day stays in the queue": {unsendable(0, "(errno 116) Stale file handle"), ledger.OutputCounts{Completed: 1, Waiting: 1}, 1},
		"what no transfer says a word about, too": {&condor.Error{Command: "condor_transfer_data", Stderr: "the connection was cut"}, ledger.OutputCounts{Completed: 1, Waiting: 1}, 1},
		"what is gone is given up":                {unsendable(0, "(errno 2) No such file or directory"), ledger.OutputCounts{Completed: 1, GivenUp: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.completed("one", 1)
			w.schedd.Down(c.why, scheddtest.Transfer)
			w.fetch("one")
			for range 40 {
				w.clock = w.clock.Add(time.Minute)
				w.fetch("one")
			}
			require.ErrorIs(t, w.inTheWay, c.why)
			require.Equal(t, condor.Unknown, condor.KindOf(w.inTheWay))
			require.Len(t, w.schedd.Jobs(), 1)
			require.Less(t, w.schedd.Calls(scheddtest.Transfer), 15, "the pauses grow")
			for range 24 {
				w.clock = w.clock.Add(time.Hour)
				w.fetch("one")
			}
			require.Equal(t, c.want, w.counts(run))
			require.Len(t, w.schedd.Jobs(), c.left)
			if c.left == 0 {
				require.NoError(t, w.inTheWay)
				require.Contains(t, strings.Join(w.told, "\n"), `the schedd has no file "x", which is`)
			}
			w.schedd.Down(nil, scheddtest.Transfer)
			w.clock = w.clock.Add(time.Hour)
			w.fetch("one")
			require.Empty(t, w.schedd.Jobs())
			require.Empty(t, w.pauses.m)
		})
	}
}

func TestOutputThatLacksFilesIsKeptAfterMinutes(t *testing.T) {
	w := newWorld(t)
	run := w.completed("one", 2)
	lacking := unsendable(0, "(errno 2) No such file or directory")
	lacking.Lacks = []string{"a", "b"}
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Err: lacking})
	w.fetch("one")
	require.Equal(t, "out of 1.1\n", w.kept(run, 1), "it holds up no other")
	require.Equal(t, "absent", w.kept(run, 0))
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Err: lacking, After: true})
	w.clock = w.clock.Add(goWithoutAfter)
	w.fetch("one")
	require.Equal(t, "out of 1.0\n", w.kept(run, 0))
	const lack = `of the output of job 1.0 HTCondor did not keep "a", "b"`
	require.Equal(t, ledger.OutputCounts{Completed: 2, Incomplete: 1, Stderr: "(" + lack + ")"}, w.counts(run))
	require.Equal(t, []string{lack}, w.told)
	require.Empty(t, w.schedd.Jobs())
	require.Empty(t, w.pauses.m)
}

func TestWhatAFailedJobHasToldStaysWhereNothingOfItComes(t *testing.T) {
	w := newWorld(t)
	run := w.completed("one", 1)
	change := func(do func(*ledger.Proc)) (p ledger.Proc) {
		require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) (err error) {
			if p, err = tx.Proc(run.UID, run.Attempt, 0); err != nil {
				return err
			}
			do(&p)
			return tx.UpdateProc(p)
		}))
		return p
	}
	change(func(p *ledger.Proc) { p.Status, p.Stderr = ledger.StatusFailed, "why" })
	w.fetch("one")
	is := change(func(*ledger.Proc) {})
	require.Equal(t, ledger.IsFetched, is.Fetched)
	require.Equal(t, "why", is.Stderr)
}

func TestMissingFilesAreNamedBriefly(t *testing.T) {
	long := strings.Repeat("x", 200)
	require.Equal(
		t,
		`of the output of job 7.0 HTCondor did not keep "`+long[:100]+`", "b\n", "c", "d", "e", and 2 more`,
		lackMessage("7.0", []string{long, "b\n", "c", "d", "e", "f", "g"}),
	)
}

func TestWhoIsToBlameForAFailedTransfer(t *testing.T) {
	cut := &condor.Error{Command: "condor_transfer_data", Stderr: "the connection was cut"}
	for name, c := range map[string]struct {
		why   error
		asked []int
		proc  int
		fewer bool
	}{
		"the job that is named":               {unsendable(7, "(errno 5) Input/output error"), []int{3, 7}, 7, false},
		"nobody, where the tool cannot write": {unsendable(7, "writing to file y: (errno 5) Input/output error"), []int{3, 7}, -1, false},
		"the volume, which may hold fewer":    {volumeError(unsendable(7, "(errno 28) No space left on device")), []int{3, 7}, -1, true},
		"one of several":                      {cut, []int{3, 7}, -1, true},
		"the only one":                        {cut, []int{3}, 3, false},
		"several that take too long":          {context.DeadlineExceeded, []int{3, 7}, -1, true},
		"nobody, where one takes too long":    {context.DeadlineExceeded, []int{3}, -1, false},
		"the schedd":                          {&condor.Error{Kind: condor.Unreachable}, []int{3, 7}, -1, false},
	} {
		proc, fewer := blame(c.why, c.asked)
		require.Equal(t, c.proc, proc, name)
		require.Equal(t, c.fewer, fewer, name)
	}
}

func TestABatchThatFailsWithoutANameIsMadeSmaller(t *testing.T) {
	w := newWorld(t)
	run := w.completed("one", 5)
	cut := scheddtest.Fault{Err: errors.New("the command was killed")}
	w.schedd.Fail(scheddtest.Transfer, cut, cut)
	w.fetch("one")
	w.fetch("one")
	require.Equal(t, "absent", w.kept(run, 0), "five failed, then two")
	w.fetch("one")
	require.NoError(t, w.inTheWay)
	require.Equal(t, ledger.OutputCounts{Completed: 5}, w.counts(run))
	require.Equal(t, 4, w.schedd.Calls(scheddtest.Transfer), "one alone, then the other four")
}

func TestWhatCouldNotBeSentIsForgottenWithItsHTCJob(t *testing.T) {
	w := newWorld(t)
	run := w.completed("one", 1)
	w.schedd.Down(unsendable(0, "(errno 5) Input/output error"), scheddtest.Transfer)
	w.fetch("one")
	require.NotEmpty(t, w.pauses.m)
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns(run.UID) }))
	w.clock = w.clock.Add(lastPause)
	w.fetch("one")
	require.Empty(t, w.pauses.m)
}
