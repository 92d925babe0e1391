package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARunThatSendsSomeProcsHasTheOthersFromTheOneBefore(t *testing.T) {
	l, _ := openTemp(t)
	first := testRun("u1")
	first.Procs, first.OutputDir = 5, "/out/1"
	insert(t, l, first)
	to := []Destination{
		{Number: 0, Path: "a", Artifact: "r/a:{proc}"},
		{Number: 1, Path: "b", URL: "https://x/1/{proc}"},
	}
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.SetDestinations("u1", 1, to))
		for proc, change := range []func(*Proc){
			func(p *Proc) { p.Status, p.JobStatus, p.Fetched = StatusSucceeded, 4, IsFetched },
			func(p *Proc) {
				p.Status, p.JobStatus, p.ExitCode, p.Stderr, p.Fetched = StatusFailed, 4, new(3), "no", IsFetched
			},
			func(p *Proc) { p.Status, p.Reason = StatusFailed, "Lost" },
			func(p *Proc) { p.Status, p.JobStatus, p.Reason = StatusFailed, 3, "Suspended" },
			func(p *Proc) { p.Status, p.JobStatus = StatusSucceeded, 4 },
		} {
			p, err := tx.Proc("u1", 1, proc)
			require.NoError(t, err)
			change(&p)
			require.NoError(t, tx.UpdateProc(p))
		}
		first.Confirmed = true
		require.NoError(t, tx.UpdateRun(first))
		require.NoError(
			t,
			tx.SetWritten("u1", 1, Written{Destination: to[0], Proc: 0, Push: Pushed, Digest: "sha256:0"}),
		)
		return tx.SetWritten("u1", 1, Written{Destination: to[1], Proc: 0, Size: 5})
	})
	mustRead(t, l, func(tx *Tx) error {
		kept, err := tx.Kept("u1", 1, true, "Suspended", "StagingFailed")
		require.Equal(t, []int{0, 1, 2, 4}, kept)
		require.NoError(t, err)
		kept, err = tx.Kept("u1", 1, false)
		require.Equal(t, []int{0, 4}, kept)
		return err
	})

	second := first
	second.Confirmed = false
	second.Attempt, second.State, second.Cluster, second.Sent, second.Procs, second.Jobs = 2, Intent, 0, "1,3", 2, 5
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.InsertRun(second))
		require.NoError(
			t,
			tx.SetDestinations("u1", 2, []Destination{to[0], {Number: 1, Path: "b", URL: "https://x/2/{proc}"}}),
		)
		require.NoError(t, tx.CarryProcs(second, 1))
		second.State, second.Cluster = Submitted, 200
		require.NoError(t, tx.UpdateRun(second))
		require.NoError(t, tx.InsertProcs(second, 2))
		require.ErrorIs(t, tx.InsertProcs(second, 2), ErrExists)
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		counts, err := tx.Counts("u1", 2)
		require.NoError(t, err)
		require.Equal(t, Counts{Active: 2, Succeeded: 2, Failed: 1}, counts)
		use, err := tx.PoolUse("")
		require.NoError(t, err)
		open := 0
		for _, u := range use {
			open += u.Open()
		}
		require.Equal(t, 2, open, "only what was sent")
		p, err := tx.Proc("u1", 2, 2)
		require.NoError(t, err)
		require.Equal(t, []any{"100.2", SourceCarried, "Lost", 3}, []any{p.JobID(), p.Source, p.Reason, p.JobStatus})
		p, err = tx.Proc("u1", 2, 4)
		require.NoError(t, err)
		require.Equal(t, GivenUp, p.Fetched, "it was never fetched")
		output, err := tx.Output("u1", 2)
		require.NoError(t, err)
		require.Zero(t, output.Waiting)
		written, err := tx.Written("u1", 2, 10)
		require.NoError(t, err)
		require.Len(t, written, 1, "the URL is another one")
		require.Equal(t, "sha256:0", written[0].Digest)

		for id, want := range map[string]int{"200.0": 1, "200.1": 3, "100.3": 3} {
			p, err := tx.ProcByJobID(second.Namespace, second.Name, id, nil)
			require.NoError(t, err, id)
			require.Equal(t, []any{want, id}, []any{p.Proc, p.JobID()})
		}
		_, err = tx.ProcByJobID(second.Namespace, second.Name, "200.2", nil)
		require.ErrorIs(t, err, ErrNotFound)
		return nil
	})

	third := second
	third.Attempt, third.State, third.Cluster, third.Sent, third.Procs = 3, Intent, 0, "0", 1
	require.ErrorIs(t, l.Write(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.InsertRun(third))
		return tx.CarryProcs(third, 2)
	}), ErrNotFound, "1 and 3 have not ended")
	mustWrite(t, l, func(tx *Tx) error { return tx.DropCarried("u1", 2) })
	mustRead(t, l, func(tx *Tx) error {
		counts, err := tx.Counts("u1", 2)
		require.Equal(t, Counts{Active: 2}, counts)
		return err
	})
}

// The only writer finds the job of each callback, however scattered those are that a run sends again.
func TestACallbackOfAScatteredRunCostsNoMoreThanThatOfAFewJobs(t *testing.T) {
	cost := func(procs int) float64 {
		l, _ := openTemp(t)
		r := testRun("u1")
		var sent []string
		for i := range procs {
			sent = append(sent, strconv.Itoa(2*i+1))
		}
		r.Sent, r.Procs, r.Jobs = strings.Join(sent, ","), procs, 2*procs
		insert(t, l, r)
		var allocations float64
		mustWrite(t, l, func(tx *Tx) error {
			last := fmt.Sprintf("100.%d", procs-1)
			find := func() Proc {
				p, err := tx.ProcByJobID("physics", "zero", last, nil)
				require.NoError(t, err)
				return p
			}
			require.Equal(t, 2*procs-1, find().Proc)
			allocations = testing.AllocsPerRun(20, func() { find() })
			return nil
		})
		return allocations
	}
	require.InDelta(t, cost(10), cost(20_000), 20)
}
