package schedd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestJobsRunAndCallBack(t *testing.T) {
	for name, prepare := range map[string]func(*bench){
		"with curl": func(*bench) {},
		"with wget": func(b *bench) {
			b.d.Allow = []string{"environment"}
			b.d.Options = fmt.Sprintf("environment = \"PATH=%s\"\n", b.pathWithout("curl"))
		},
		"with the sender that came along": func(b *bench) { b.d.Sender = b.sender() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.d.Queue = 3
			b.d.Binds = []string{"/opt", "/does/not/exist"}
			b.d.Source = `test "$1" = "$HTCPROCID" && test -d /opt && test ! -e token && test "$(pwd)" = "$_CONDOR_SCRATCH_DIR" || exit 99; exit $(($1 * 20))`
			prepare(b)
			cluster := b.submit()

			jobs := b.until("ended", func(j condor.Job) bool { return j.Done() })
			for _, j := range jobs {
				require.Equal(t, condor.Tag{UID: b.d.Tag.UID, Attempt: b.d.Tag.Attempt}, j.Tag)
				require.Equal(t, cluster.ID, j.Cluster)
				require.True(t, j.Spooled())
				require.NotNil(t, j.ExitCode)
				require.Equal(t, j.Proc*20, *j.ExitCode)
				require.Equal(t, j.Proc == 0, j.Outcome().State == condor.OutcomeSucceeded)
			}
			events := b.received()
			require.Len(t, events, 3)
			codes := map[string]int{}
			for _, e := range events {
				require.Equal(t, "ch.cern.htc.job.ended", e.Type)
				require.Equal(t, "Bearer "+token, e.authorization)
				require.Equal(t, "conversation", e.Data.Name)
				codes[e.Data.JobID] = e.Data.Retcode
			}
			for _, j := range jobs {
				require.Equal(t, *j.ExitCode, codes[j.ID()])
			}

			require.NoError(
				t,
				scheddtest.Err(
					b.Change(
						t.Context(),
						b.id,
						schedd.Remove{Where: condor.ClusterConstraint(cluster.ID), Reason: `the HTCJob was "deleted"`},
					),
				),
			)
			require.Eventually(t, func() bool { return len(b.jobs()) == 0 }, patience, 200*time.Millisecond)
			gone := 0
			require.NoError(
				t,
				b.Query(
					t.Context(),
					b.id,
					schedd.Query{Where: b.d.Tag.Constraint(), Left: &schedd.HistoryBounds{Limit: 10, ScanLimit: 10000}},
					func(j condor.Job) error {
						if !j.Reasoned {
							return schedd.ErrReasons
						}
						gone++
						require.True(t, j.Done(), "a completed job stays one when it is removed")
						require.Equal(t, j.Proc*20, *j.Outcome().ExitCode)
						require.Contains(t, j.RemoveReason, `the HTCJob was "deleted"`)
						return nil
					},
				),
			)
			require.Equal(t, 3, gone)
		})
	}
}

// pathWithout returns a directory on the node with all programs that a job needs except one.
func (b *bench) pathWithout(program string) string {
	// Not in /tmp, of which every job has its own.
	dir, err := os.MkdirTemp("/run", "path-")
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, os.RemoveAll(dir)) })
	require.NoError(b.t, os.Chmod(dir, 0o755))
	for _, place := range []string{"/usr/local/bin", "/usr/bin"} {
		entries, err := os.ReadDir(place)
		require.NoError(b.t, err)
		for _, e := range entries {
			if e.Name() != program {
				// The first directory takes precedence.
				_ = os.Symlink(filepath.Join(place, e.Name()), filepath.Join(dir, e.Name()))
			}
		}
	}
	return dir
}

// pathWithMv returns a directory on the node with all programs that a job needs, with an mv that begins with these
// commands.
func (b *bench) pathWithMv(first string) string {
	dir := b.pathWithout("mv")
	require.NoError(
		b.t,
		os.WriteFile(filepath.Join(dir, "mv"), []byte("#!/bin/sh\n"+first+"\nexec /usr/bin/mv \"$@\"\n"), 0o755),
	)
	return dir
}

// sender is the htcd binary of the lab.
func (b *bench) sender() string {
	found, err := filepath.Glob(b.world.Lab.Path("htcd", "bin", "htcd"))
	require.NoError(b.t, err)
	require.Len(b.t, found, 1)
	return found[0]
}

func TestARemovedJobSaysWhoAndWhyAndDoesNotCallBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.Source = "sleep 1000"
	cluster := b.submit()
	b.until("running", func(j condor.Job) bool { return j.Status == condor.Running })
	require.NoError(
		t,
		scheddtest.Err(b.Change(t.Context(), b.id, schedd.Remove{Where: b.d.Tag.Constraint(), Reason: "enough"})),
	)
	require.Eventually(t, func() bool { return len(b.jobs()) == 0 }, patience, 200*time.Millisecond)
	var gone []condor.Job
	require.Eventually(t, func() bool {
		gone = nil
		require.NoError(
			t,
			b.Query(
				t.Context(),
				b.id,
				schedd.Query{Where: condor.ClusterConstraint(cluster.ID), Left: &schedd.HistoryBounds{Limit: 10}},
				func(j condor.Job) error {
					if !j.Reasoned {
						return schedd.ErrReasons
					}
					gone = append(gone, j)
					return nil
				},
			),
		)
		return len(gone) == 1
	}, patience, 200*time.Millisecond)
	require.Equal(
		t,
		condor.Outcome{State: condor.OutcomeRemoved, Reason: "Removed", Message: "enough (by user robot)"},
		gone[0].Outcome(),
	)
	require.Empty(t, b.received())
}

func TestAJobWithRetriesIsOpenUntilHTCondorGivesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.Source, b.d.Options = "exit 5", "max_retries = 1\n"
	s, err := b.d.Render()
	require.NoError(t, err)
	require.True(t, s.Deferred)
	b.submit()
	jobs := b.until("ended", func(j condor.Job) bool { return j.Outcome().State != condor.OutcomeOpen })
	require.Equal(t, 2, jobs[0].NumJobStarts)
	require.Equal(t, "exit code 5", jobs[0].Outcome().Message)
	require.Len(t, b.received(), 2, "one for each attempt")
}

func TestTickets(t *testing.T) {
	t.Parallel()
	w := world(t)
	k := keeper(t, w)
	keytab, err := os.ReadFile(w.Lab.Path("krb", "robot.keytab"))
	if err == nil {
		got, err := k.Ticket(t.Context(), krb.Credential{Username: "robot", Keytab: keytab})
		require.NoError(t, err)
		require.FileExists(t, got.CCache)
	} else {
		require.ErrorIs(t, err, os.ErrPermission, "the keytab is not for the account of htcd")
	}
	got, err := k.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), got.Expires, time.Minute)
	for kind, c := range map[krb.Kind]krb.Credential{
		krb.BadPassword:      {Username: "robot", Password: "wrong"},
		krb.UnknownPrincipal: {Username: "nobody-at-all", Password: "x"},
		krb.RealmNotAllowed:  {Username: "robot@ANOTHER.REALM", Password: "x"},
		krb.Invalid:          {Username: "a@b@c", Password: "x"},
	} {
		_, err := k.Ticket(t.Context(), c)
		var e *krb.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, kind, e.Kind, e.Message)
	}
	anywhere := krb.New(
		krb.Options{Dir: t.TempDir(), Krb5Config: w.Lab.Path("krb", "krb5.conf"), Realms: []string{"ANOTHER.REALM"}},
	)
	t.Cleanup(func() { require.NoError(t, anywhere.Close()) })
	_, err = anywhere.Ticket(t.Context(), krb.Credential{Username: "robot@ANOTHER.REALM", Password: "x"})
	var e *krb.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, krb.KDCUnreachable, e.Kind, e.Message)
}

func TestAnOldTicketIsRenewedByTheRealKDC(t *testing.T) {
	t.Parallel()
	w := world(t)
	ahead := time.Duration(0)
	k := krb.New(krb.Options{
		Dir: t.TempDir(), Krb5Config: w.Lab.Path("krb", "krb5.conf"), Lifetime: time.Hour, Renewable: 24 * time.Hour,
		Now: func() time.Time { return time.Now().Add(ahead) },
	})
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	first, err := k.Ticket(t.Context(), robot)
	require.NoError(t, err)
	before, err := os.Stat(first.CCache)
	require.NoError(t, err)
	ahead = 50 * time.Minute
	second, err := k.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.Equal(t, first.CCache, second.CCache)
	after, err := os.Stat(second.CCache)
	require.NoError(t, err)
	require.False(t, os.SameFile(before, after), "another file stands in its place")
	require.Equal(t, os.FileMode(0o600), after.Mode().Perm())
}
