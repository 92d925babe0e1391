package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsWrittenElsewhereIsRecordedForEachProc(t *testing.T) {
	l, _ := openTemp(t)
	run := Run{UID: "u-1", Attempt: 1, Namespace: "a", Name: "b", State: Submitted, Cluster: 7, Procs: 4}
	to := []Destination{
		{Number: 1, Path: "big", URL: "https://x/{proc}"},
		{Number: 3, Path: "model", Artifact: "r/x:{proc}"},
	}
	write := func(fn func(tx *Tx)) {
		require.NoError(t, l.Write(t.Context(), func(tx *Tx) error { fn(tx); return nil }))
	}
	end := func(tx *Tx, proc int, status Status) {
		require.NoError(t, tx.UpdateProc(Proc{UID: "u-1", Attempt: 1, Proc: proc, Status: status, JobStatus: 4}))
	}
	write(func(tx *Tx) {
		require.ErrorIs(t, tx.SetDestinations("u-1", 1, to), ErrNotFound)
		require.NoError(t, tx.InsertRun(run))
		require.NoError(t, tx.InsertProcs(run, 4))
		require.NoError(t, tx.SetDestinations("u-1", 1, to[:1]))
		require.NoError(t, tx.SetDestinations("u-1", 1, to))
		counts, err := tx.Pushes("u-1", 1)
		require.NoError(t, err)
		require.Equal(t, PushCounts{Any: true}, counts)
		_, err = tx.NextPush("u-1", 1, 0)
		require.ErrorIs(t, err, ErrNotFound)

		// What the node has sent is noted first; what has no such destination is not.
		for _, number := range []int{0, 1, 2, 3} {
			require.NoError(
				t,
				tx.SetWritten(
					"u-1",
					1,
					Written{Destination: Destination{Number: number}, Proc: 2, Size: 5, Digest: "sha256:a"},
				),
			)
		}
		end(tx, 0, StatusSucceeded)
		end(tx, 1, StatusFailed)
		end(tx, 2, StatusSucceeded)
		require.NoError(t, tx.ExpectWritten("u-1", 1, 2, ""))
		require.NoError(t, tx.ExpectWritten("u-1", 1, 0, "gone"))
		require.NoError(t, tx.ExpectWritten("u-1", 1, 1, ""))
	})
	sent := func(proc int, size int64, digest string) Written {
		return Written{Destination: to[0], Proc: proc, Size: size, Digest: digest}
	}
	written := func(limit int) (all []Written) {
		require.NoError(
			t,
			l.Read(t.Context(), func(tx *Tx) (err error) { all, err = tx.Written("u-1", 1, limit); return err }),
		)
		return all
	}
	require.Equal(
		t,
		[]Written{sent(0, UnknownSize, ""), sent(2, 5, "sha256:a")},
		written(9),
		"no failed job, and nothing that is still to be pushed",
	)
	require.Len(t, written(1), 1)

	pushed := Written{Destination: to[1], Proc: 2, Size: 9, Digest: "sha256:m", Push: Pushed}
	write(func(tx *Tx) {
		next, err := tx.NextPush("u-1", 1, 0)
		require.NoError(t, err)
		require.Equal(
			t,
			Written{Destination: to[1], Proc: 2, Size: UnknownSize, Push: Unpushed},
			next,
			"not of the job whose output is not here, nor of a failed one",
		)
		_, err = tx.NextPush("u-1", 1, 4)
		require.ErrorIs(t, err, ErrNotFound)
		runs, err := tx.UnpushedRuns()
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.NoError(t, tx.SetWritten("u-1", 1, pushed))
	})
	require.Equal(t, []Written{sent(0, UnknownSize, ""), sent(2, 5, "sha256:a"), pushed}, written(9))
	write(func(tx *Tx) {
		require.NoError(
			t,
			tx.SetWritten(
				"u-1",
				1,
				Written{Destination: to[1], Proc: 1, Size: UnknownSize, Push: NotPushed, Note: "too odd"},
			),
		)
		counts, err := tx.Pushes("u-1", 1)
		require.NoError(t, err)
		require.Equal(t, PushCounts{Any: true, Pushed: 1, NotPushed: 2, Note: "gone"}, counts)

		// The job ran again, and its output was fetched again.
		require.NoError(t, tx.ExpectWritten("u-1", 1, 2, ""))
	})
	require.Equal(t, []Written{sent(0, UnknownSize, ""), sent(2, 5, "sha256:a")}, written(9))
	write(func(tx *Tx) {
		require.NoError(t, tx.DeleteRuns("u-1"))
		runs, err := tx.UnpushedRuns()
		require.NoError(t, err)
		require.Empty(t, runs)
	})
	require.Empty(t, written(9))
}
