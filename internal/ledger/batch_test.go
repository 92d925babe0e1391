package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hold keeps the writing goroutine busy in a Write until release is called, so
// that what is written meanwhile becomes one batch.
func hold(t *testing.T, l *Ledger) (release func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- l.Write(context.Background(), func(*Tx) error { close(begun); <-end; return nil })
	}()
	<-begun
	return func() {
		close(end)
		require.NoError(t, <-done)
	}
}

// writeAll starts a Write for each fn, waits until all are queued, releases
// the writing goroutine and returns their errors.
func writeAll(t *testing.T, l *Ledger, fns ...func(*Tx) error) []error {
	t.Helper()
	release := hold(t, l)
	errs := make([]error, len(fns))
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() { errs[i] = l.Write(context.Background(), fn) })
		require.Eventually(t, func() bool { return len(l.writes) == i+1 }, 10*time.Second, 100*time.Microsecond)
	}
	release()
	wg.Wait()
	return errs
}

func uids(t *testing.T, l *Ledger) []string {
	t.Helper()
	all := []string{}
	mustRead(t, l, func(tx *Tx) error {
		runs, err := tx.Runs(RunFilter{})
		for _, r := range runs {
			all = append(all, r.UID)
		}
		return err
	})
	return all
}

func insertRun(uid string) func(*Tx) error {
	return func(tx *Tx) error { return tx.InsertRun(testRun(uid)) }
}

func TestAnErrorTakesBackItsOwnPartOnly(t *testing.T) {
	l, _ := openTemp(t)
	mine := errors.New("mine")
	errs := writeAll(t, l,
		insertRun("a"),
		func(tx *Tx) error { return errors.Join(insertRun("b")(tx), mine) },
		insertRun("c"),
		insertRun("a"),
	)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], mine)
	require.NoError(t, errs[2])
	require.ErrorIs(t, errs[3], ErrExists)
	require.Equal(t, []string{"a", "c"}, uids(t, l))
}

func TestAPanicReachesItsCallerOnly(t *testing.T) {
	l, _ := openTemp(t)
	require.PanicsWithValue(t, "no", func() {
		_ = l.Write(context.Background(), func(tx *Tx) error {
			require.NoError(t, insertRun("a")(tx))
			panic("no")
		})
	})
	mustWrite(t, l, insertRun("b"))
	require.Equal(t, []string{"b"}, uids(t, l))
}

func TestAFullDiskFailsTheWholeBatchAndPasses(t *testing.T) {
	l, _ := openTemp(t)
	mustWrite(t, l, insertRun("before"))
	_, err := l.writer.sql.ExecContext(
		context.Background(),
		`PRAGMA max_page_count = 1`,
	) // SQLite makes it the present size
	require.NoError(t, err)
	big := testRun("big")
	big.Message = string(make([]byte, 1<<20))
	errs := writeAll(t, l, insertRun("a"), func(tx *Tx) error { return tx.InsertRun(big) }, insertRun("c"))
	for i, err := range errs {
		require.Error(t, err, i)
		require.True(t, IsUnavailable(err), err)
	}
	require.Equal(t, []string{"before"}, uids(t, l))

	mustWrite(t, l, insertRun("after")) // on a new connection, without the limit
	require.Equal(t, []string{"before", "after"}, uids(t, l))
}

func TestAReadOnlyFileIsUnavailableAndPasses(t *testing.T) {
	l, _ := openTemp(t)
	_, err := l.writer.sql.ExecContext(context.Background(), `PRAGMA query_only = 1`)
	require.NoError(t, err)
	err = l.Write(context.Background(), insertRun("a"))
	require.True(t, IsUnavailable(err), err)
	mustWrite(t, l, insertRun("a"))
}

// A file that was read-only when a connection was made stays so to this connection.
func TestAFileThatWasReadOnlyAtFirstPasses(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("a"))
	db, err := openDB(path, writerPragmas+"&mode=ro")
	require.NoError(t, err)
	readOnly, err := connect(t.Context(), db)
	require.NoError(t, err)
	l.writer.discard()
	l.writer = readOnly
	write := func() error {
		return l.Write(t.Context(), func(tx *Tx) error { return tx.InsertRun(testRun("b")) })
	}
	require.True(t, IsUnavailable(write()))
	require.NoError(t, write())
	require.NoError(t, db.Close())
}

func TestALockHeldElsewhereIsUnavailableAndPasses(t *testing.T) {
	l, path := openTemp(t)
	_, err := l.writer.sql.ExecContext(context.Background(), `PRAGMA busy_timeout = 1`)
	require.NoError(t, err)
	other, err := shell(t, path).Conn(context.Background())
	require.NoError(t, err)
	_, err = other.ExecContext(context.Background(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)
	err = l.Write(context.Background(), insertRun("a"))
	require.True(t, IsUnavailable(err), err)
	_, err = other.ExecContext(context.Background(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	mustWrite(t, l, insertRun("a"))
}

func TestAWaitingWriteGivesUpWithItsContext(t *testing.T) {
	l, _ := openTemp(t)
	release := hold(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Write(ctx, insertRun("a")) }()
	require.Eventually(t, func() bool { return len(l.writes) == 1 }, 10*time.Second, 100*time.Microsecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	release()
	mustWrite(t, l, insertRun("b"))
	require.Equal(t, []string{"b"}, uids(t, l), "what was given up is never run")
}

func TestCloseAnswersWhatWaits(t *testing.T) {
	l, path := openTemp(t)
	release := hold(t, l)
	done := make(chan error)
	go func() { done <- l.Write(context.Background(), insertRun("a")) }()
	require.Eventually(t, func() bool { return len(l.writes) == 1 }, 10*time.Second, 100*time.Microsecond)
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	release()
	require.NoError(t, <-done)
	require.NoError(t, <-closed)

	l, err := Open(context.Background(), path)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, uids(t, l))
	require.NoError(t, l.Close())
}

func TestReadsGoOnWhileAWriteIsBeingPut(t *testing.T) {
	l, path := openTemp(t)
	mustWrite(t, l, insertRun("a"))
	require.NoError(t, l.Write(context.Background(), func(tx *Tx) error {
		r := testRun("b")
		r.Procs = 20_000 // more pages than the cache holds
		require.NoError(t, tx.InsertRun(r))
		require.NoError(t, tx.InsertProcs(r, r.Procs))
		require.Equal(t, []string{"a"}, uids(t, l), "a read sees what is committed")
		var n int
		require.NoError(
			t,
			shell(t, path).QueryRow(`SELECT count(*) FROM runs`).Scan(&n),
			"and so does the sqlite3 shell",
		)
		require.Equal(t, 1, n)
		return nil
	}))
	require.Equal(t, []string{"a", "b"}, uids(t, l))
}

func TestAReadCannotWrite(t *testing.T) {
	l, _ := openTemp(t)
	require.Error(t, l.Read(context.Background(), insertRun("a")))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, l.Read(ctx, func(*Tx) error { return nil }), context.Canceled)
	require.Empty(t, uids(t, l))
}

func TestManyWritersReadersAndASecondProcess(t *testing.T) {
	l, path := openTemp(t)
	second, err := Open(context.Background(), path) // SQLite knows no difference between this and a process
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 10 {
				to := []*Ledger{l, second}[i%2]
				if err := to.Write(context.Background(), insertRun(fmt.Sprintf("%d-%d", i, j))); err != nil {
					t.Errorf("write: %v", err)
				}
				if err := to.Read(
					context.Background(),
					func(tx *Tx) error { _, err := tx.Runs(RunFilter{Unconfirmed: true}); return err },
				); err != nil {
					t.Errorf("read: %v", err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, second.Close())
	require.Len(t, uids(t, l), 160)
}
