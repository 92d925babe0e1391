package nodes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
)

func TestACallbackMayComeBeforeAnythingElse(t *testing.T) {
	w := newWorld(t)
	run := w.send("u1", 1)
	intent := func(state ledger.RunState) {
		run.State = state
		w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
	}
	intent(ledger.Intent)
	report := func(number int, jobID string, code, exit int, token string) (r Recorded, err error) {
		c := notify.Callback{
			Name:      "u1",
			Namespace: "physics",
			JobID:     jobID,
			Retcode:   code,
			Stderr:    "a\x1b[2Jb\n",
			Node:      &notify.Node{Number: number, Exit: exit},
		}
		err = w.book.Write(t.Context(), func(tx *ledger.Tx) (err error) {
			r, err = Record(tx, c, notify.Hash(token), w.clock)
			return err
		})
		return r, err
	}
	_, err := report(0, "92.0", 3, 3, "another token")
	require.ErrorIs(t, err, notify.ErrForbidden)
	for _, wrong := range []struct {
		number int
		jobID  string
	}{{7, "92.0"}, {0, "92.1"}} {
		_, err = report(wrong.number, wrong.jobID, 3, 3, "the token of u1")
		require.ErrorIs(t, err, notify.ErrUnknownJob)
	}
	r, err := report(0, "92.0", 3, 3, "the token of u1")
	require.NoError(t, err)
	require.True(t, r.Changed)
	require.False(t, r.Ask)
	require.Equal(
		t,
		[]ledger.NodeState{hasFail, waits},
		w.states("u1"),
		"the DAG may be faster than its submission is recorded",
	)
	n := w.nodes("u1")[0]
	require.Equal(t, "92.0", n.JobID())
	require.Equal(t, "a?[2Jb", n.Stderr)

	intent(ledger.Submitted)
	require.False(t, w.settled("u1"))
	r, err = report(1, "93.0", 75, 75, "the token of u1")
	require.NoError(t, err)
	require.True(t, r.Ask, "HTCondor may try it again")
	require.Equal(t, waits, w.states("u1")[1])
	w.node("u1", 0, 92)
	w.node("u1", 1, 93)
	w.leaves(92, 3)
	w.leaves(93, 0)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{hasFail, isDone}, w.states("u1"))
	require.True(t, w.settled("u1"))
	require.Empty(t, w.nodes("u1")[1].Stderr)

	run.Stop = crosscheck.StopSuspended
	w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
	r, err = report(0, "92.0", 143, 143, "the token of u1")
	require.NoError(t, err)
	require.True(t, r.Ask, "it says how the job was killed")
	require.False(t, r.Changed)
	_, err = report(0, "92.0", 0, 0, "the token of u1")
	require.NoError(t, err)
	require.Equal(t, hasFail, w.states("u1")[0])
}

func TestTheStandardErrorOfManyIsNotKept(t *testing.T) {
	w := newWorld(t)
	w.send("u1", keptStderrs/2+5)
	w.write(func(tx *ledger.Tx) error {
		for number := range keptStderrs + 10 {
			c := notify.Callback{
				Name:      "u1",
				Namespace: "physics",
				JobID:     fmt.Sprintf("%d.0", 100+number),
				Retcode:   3,
				Stderr:    "why",
				Node:      &notify.Node{Number: number, Exit: 3},
			}
			if _, err := Record(tx, c, notify.Hash("the token of u1"), w.clock); err != nil {
				return err
			}
		}
		kept, err := tx.KeptStderrs("u1", 1)
		require.Equal(t, keptStderrs, kept)
		return err
	})
}
