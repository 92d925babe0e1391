package scheddtest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

func stage(t *testing.T, uid string, queue int) string {
	t.Helper()
	dir := t.TempDir()
	s, err := submit.Description{
		Tag:       condor.Tag{UID: uid, Attempt: 1, Namespace: "default", Name: "zero"},
		BatchName: "zero", Queue: queue, Image: "docker://centos", Command: "bash",
	}.Render()
	require.NoError(t, err)
	require.NoError(t, submit.Stage(dir, s, "token"))
	return dir
}

func TestTheConversation(t *testing.T) {
	s, ctx, id := New(), t.Context(), schedd.Identity{}
	c, err := s.Submit(ctx, id, stage(t, "u", 3))
	require.NoError(t, err)
	require.Equal(t, condor.Cluster{ID: 1, Procs: 3}, c)
	ask := func(constraint condor.Constraint) (ids []string) {
		require.NoError(
			t,
			s.Query(
				ctx,
				id,
				schedd.Query{Where: constraint},
				func(j condor.Job) error { ids = append(ids, j.ID()); return nil },
			),
		)
		return ids
	}
	require.Equal(t, []string{"1.0", "1.1", "1.2"}, ask(condor.Tag{UID: "u", Attempt: 1}.Constraint()))
	require.Empty(t, ask(condor.Tag{UID: "u", Attempt: 2}.Constraint()))
	require.Len(t, ask(condor.ClusterConstraint(1, 2)), 3)
	require.Empty(t, ask(condor.ClusterConstraint()))
	require.Len(t, ask(condor.Tagged+" && JobStatus == 1"), 3)
	require.Error(t, s.Query(ctx, id, schedd.Query{Where: "regexp(1)"}, func(condor.Job) error { return nil }))

	s.Run(1, -1)
	s.Complete(1, 0, 7)
	s.Leave(1, 0)
	s.Lose(1, 1)
	require.NoError(t, Err(s.Change(ctx, id, schedd.Remove{Where: condor.UIDConstraint("u"), Reason: "enough"})))
	require.Empty(t, ask(""))
	var gone []condor.Job
	require.NoError(
		t,
		s.Query(
			ctx,
			id,
			schedd.Query{Left: &schedd.HistoryBounds{}},
			func(j condor.Job) error { gone = append(gone, j); return nil },
		),
	)
	require.Len(t, gone, 2)
	require.Equal(t, "enough (by user robot)", gone[0].Outcome().Message)
	require.Equal(t, 7, *gone[1].Outcome().ExitCode)
	gone = nil
	require.NoError(
		t,
		s.Query(
			ctx,
			id,
			schedd.Query{Left: &schedd.HistoryBounds{Since: "1.0"}},
			func(j condor.Job) error { gone = append(gone, j); return nil },
		),
	)
	require.Len(t, gone, 1)
}

func TestFaults(t *testing.T) {
	s, ctx, id := New(), t.Context(), schedd.Identity{}
	lost := errors.New("killed")
	s.Fail(Submit, Fault{Err: lost}, Fault{Err: lost, After: true})
	for range 2 {
		_, err := s.Submit(ctx, id, stage(t, "u", 1))
		require.ErrorIs(t, err, lost)
	}
	require.Len(t, s.Jobs(), 1, "the second came through")
	s.Down(lost, Queue)
	require.ErrorIs(t, s.Query(ctx, id, schedd.Query{}, nil), lost)
	s.Down(nil)
	require.NoError(t, s.Query(ctx, id, schedd.Query{Where: "false"}, nil))
	require.Equal(t, 2, s.Calls(Submit))
}
