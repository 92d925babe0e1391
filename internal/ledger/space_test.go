package ledger

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

func sizeOf(tb testing.TB, path string) int64 {
	tb.Helper()
	info, err := os.Stat(path)
	require.NoError(tb, err)
	return info.Size()
}

// until writes what htcd writes when nothing happens, as often as it takes.
func until(tb testing.TB, l *Ledger, is func() bool) {
	tb.Helper()
	for !is() {
		require.NoError(tb, tb.Context().Err())
		mustWrite(tb, l, (*Tx).Touch)
		runtime.Gosched()
	}
}

func large(uid string, procs int) Run {
	r := testRun(uid)
	r.Procs = procs
	return r
}

func TestDeletedRowsGiveTheirSpaceBackWhileOthersWrite(t *testing.T) {
	l, path := openTemp(t)
	require.NoError(t, l.GivesBack())
	const procs = 100_000
	insert(t, l, large("gone", procs))
	insert(t, l, large("stays", 1000))
	full := sizeOf(t, path)
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("gone") })
	ctx, stop := context.WithCancel(t.Context())
	var writers errgroup.Group
	for i := range 4 {
		writers.Go(func() error {
			for proc := i; ctx.Err() == nil; proc = (proc + 4) % 1000 {
				err := l.Write(context.Background(), func(tx *Tx) error {
					p, err := tx.Proc("stays", 1, proc)
					if err != nil {
						return err
					}
					p.Message = fmt.Sprint(proc)
					return tx.UpdateProc(p)
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	until(t, l, func() bool { return sizeOf(t, path) <= sparePages*4096+1<<20 })
	stop()
	require.NoError(t, writers.Wait())
	t.Logf("%d procs: %d bytes, %d a proc; %d after their deletion", procs, full, full/procs, sizeOf(t, path))
	mustRead(t, l, func(tx *Tx) error {
		counts, err := tx.Counts("stays", 1)
		require.Equal(t, 1000, counts.Active)
		free, freeErr := tx.Free()
		require.NoError(t, freeErr)
		require.Less(t, free, int64(sparePages*4096+1<<20))
		return err
	})
	require.NoError(t, examine(t.Context(), path))
}

// older makes a file as an htcd did that gave nothing back.
func older(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "it's old", "htcjobs.db")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, prepareFile(t.Context(), path))
	db := shell(t, path)
	_, err := db.Exec(
		`CREATE TABLE filling (x); WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) INSERT INTO filling SELECT randomblob(1000) FROM c;
		INSERT INTO htcjobs (htcjobName, jobId, status, tempDir) VALUES ('first', '1.0', 4, '/tmp/first')`,
	)
	require.NoError(t, err)
	return path
}

func autoVacuum(t *testing.T, path string) (mode int) {
	require.NoError(t, shell(t, path).QueryRow(`PRAGMA auto_vacuum`).Scan(&mode))
	return mode
}

func TestALedgerOfAnOlderHtcdIsPreparedOnce(t *testing.T) {
	path := older(t)
	require.Zero(t, autoVacuum(t, path))
	l, err := Open(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, l.GivesBack())
	require.Equal(t, incremental, autoVacuum(t, path))
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	require.NoError(t, err)
	require.Subset(t, []string{path, path + "-journal"}, left)
	var name string
	require.NoError(t, shell(t, path).QueryRow(`SELECT htcjobName FROM htcjobs`).Scan(&name))
	require.Equal(t, "first", name)
	_, err = shell(t, path).Exec(`DELETE FROM filling`)
	require.NoError(t, err)
	until(t, l, func() bool { return sizeOf(t, path) <= sparePages*4096+1<<20 })
	require.NoError(t, l.Close())
}

// alone runs a test in a process of its own, and reports whether this is that process. full would keep others from
// writing, among them package testing, which logs for go test's cache what files a test looks at.
func alone(t *testing.T) bool {
	const variable = "LEDGER_TEST_ALONE"
	if os.Getenv(variable) == t.Name() {
		return true
	}
	own, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), own, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// full lets no file of this process grow beyond a size, as a full volume would. The test is alone.
func full(t *testing.T, size uint64, f func()) {
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) }()
	f()
}

func TestWithoutRoomAnOlderLedgerWorksAsItDid(t *testing.T) {
	if !alone(t) {
		return
	}
	path := older(t)
	full(t, 4<<20, func() {
		l, err := Open(t.Context(), path)
		require.NoError(t, err)
		require.ErrorContains(t, l.GivesBack(), "prepare the ledger")
		insert(t, l, testRun("u"))
		require.NoError(t, l.Close())
	})
	require.Zero(t, autoVacuum(t, path))
	l, err := Open(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, l.GivesBack(), "there is room again")
	mustRead(t, l, func(tx *Tx) error {
		_, err := tx.Run("u", 1)
		return err
	})
	require.NoError(t, l.Close())
}

func TestSpaceIsGivenBackAfterTheVolumeWasFull(t *testing.T) {
	if !alone(t) {
		return
	}
	l, path := openTemp(t)
	insert(t, l, large("gone", 100_000))
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("gone") })
	big := sizeOf(t, path)
	require.NoError(t, os.Remove(path+"-journal")) // which has the room of earlier commits
	full(t, 4096, func() {
		err := l.Write(t.Context(), (*Tx).Touch)
		require.Error(t, err)
		require.True(t, IsUnavailable(err), "%v", err)
	})
	require.LessOrEqual(t, sizeOf(t, path), big)
	until(t, l, func() bool { return sizeOf(t, path) < big/2 })
	require.NoError(t, examine(t.Context(), path))
}

func TestNothingIsToBeGivenBackWithoutAConnection(t *testing.T) {
	l, _ := openTemp(t)
	insert(t, l, large("gone", 50_000))
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("gone") })
	err := l.Write(t.Context(), func(tx *Tx) error {
		if _, err := tx.exec(`PRAGMA query_only = 1`); err != nil {
			return err
		}
		return insertRun("a")(tx)
	})
	require.True(t, IsUnavailable(err), err)
	require.NoError(t, l.Close())
	require.Nil(t, l.writer)
	require.Nil(t, l.space.due(), "the writing goroutine would have nothing to wait for")
}
