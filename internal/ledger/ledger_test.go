package ledger

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// openTemp opens a new ledger that the end of the test closes.
func openTemp(tb testing.TB) (*Ledger, string) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "sqlite", "htcjobs.db")
	l, err := Open(context.Background(), path)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, l.Close()) })
	return l, path
}

// testRun is a submitted run of 3 procs, in cluster 100.
func testRun(uid string) Run {
	return Run{
		UID: uid, Attempt: 1, Namespace: "physics", Name: "zero", Generation: 2, State: Submitted,
		Reason: "Sent", Message: "sent to the schedd", Schedd: "schedd.example", Cluster: 100, Procs: 3,
		TokenHash: []byte{1, 2, 3}, TempDir: "/data/staging/" + uid, Created: noon, Submitted: noon.Add(time.Second),
	}
}

func mustWrite(tb testing.TB, l *Ledger, fn func(*Tx) error) {
	tb.Helper()
	require.NoError(tb, l.Write(context.Background(), fn))
}

func mustRead(tb testing.TB, l *Ledger, fn func(*Tx) error) {
	tb.Helper()
	require.NoError(tb, l.Read(context.Background(), fn))
}

// insert writes a run and the rows of its procs.
func insert(tb testing.TB, l *Ledger, r Run) {
	tb.Helper()
	mustWrite(tb, l, func(tx *Tx) error {
		if err := tx.InsertRun(r); err != nil {
			return err
		}
		return tx.InsertProcs(r, r.Procs)
	})
}

// shell opens the file as another program would, with SQLite's own defaults.
func shell(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}

func TestOpenCreatesTheFileAndKeepsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "there yet?", "100% #1.db")
	l, err := Open(context.Background(), path)
	require.NoError(t, err)
	insert(t, l, testRun("u1"))
	require.NoError(t, l.Close())
	require.FileExists(t, path)

	l, err = Open(context.Background(), path)
	require.NoError(t, err)
	mustRead(t, l, func(tx *Tx) error {
		counts, err := tx.Counts("u1", 1)
		require.Equal(t, Counts{Active: 3}, counts)
		return err
	})
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "closing twice")
	require.ErrorIs(t, l.Write(context.Background(), func(*Tx) error { return nil }), ErrClosed)
	require.ErrorIs(t, l.Read(context.Background(), func(*Tx) error { return nil }), ErrClosed)
}

func TestThePublicTableReadsLikeTheFirstOperators(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("u1"))

	rows, err := shell(t, path).Query(`SELECT htcjobName, jobId, status, tempDir FROM htcjobs ORDER BY rowid`)
	require.NoError(t, err)
	var got [][4]string
	require.NoError(t, eachRow(rows, func(row scanner) error {
		var r [4]string
		err := row.Scan(&r[0], &r[1], &r[2], &r[3])
		got = append(got, r)
		return err
	}))
	require.NoError(t, rows.Close())
	require.Equal(t, [][4]string{
		{"zero", "100.0", "1", "/data/staging/u1"},
		{"zero", "100.1", "1", "/data/staging/u1"},
		{"zero", "100.2", "1", "/data/staging/u1"},
	}, got)
}

// Over time the first operator created its table in three ways, and never with a key: a job that was sent twice has two
// rows.
func TestAFileOfTheFirstOperatorIsCarriedOn(t *testing.T) {
	for fifth, insertion := range map[string]string{
		"":                    `INSERT INTO htcjobs VALUES (?, ?, ?, ?)`,
		", uniqid integer":    `INSERT INTO htcjobs VALUES (?, ?, ?, ?, 5577006791947779410)`,
		", uniqIdent integer": `INSERT INTO htcjobs VALUES (?, ?, ?, ?, 5577006791947779410)`,
	} {
		t.Run("its table ends in tempDir varchar"+fifth, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "htcjobs.db")
			old := shell(t, path)
			_, err := old.Exec(`create table htcjobs(
    htcjobName varchar,
    jobId char(10),
    status integer,
    tempDir varchar` + fifth + `
)`)
			require.NoError(t, err)
			for _, row := range [][]any{
				{"zero", "884426.0", 4, "/data/tmp_jobs/scratch-1"},
				{"zero", "100.0", 7, "/data/tmp_jobs/scratch-2"},
				{"zero", "100.0", 1, "/data/tmp_jobs/scratch-2"},
				{nil, nil, nil, nil},
			} {
				_, err := old.Exec(insertion, row...)
				require.NoError(t, err)
			}
			before := dump(t, old)
			require.Len(t, before, 4)

			for range 2 { // the second time nothing is left to migrate
				l, err := Open(context.Background(), path)
				require.NoError(t, err)
				mustRead(t, l, func(tx *Tx) error {
					_, err := tx.ProcByJobID("", "zero", "884426.0", nil)
					require.ErrorIs(t, err, ErrNotFound)
					runs, err := tx.Runs(RunFilter{})
					require.Empty(t, runs)
					return err
				})
				insert(t, l, testRun("u1"))
				mustRead(t, l, func(tx *Tx) error {
					p, err := tx.ProcByJobID("physics", "zero", "100.0", nil)
					require.Equal(t, "u1", p.UID)
					require.Equal(t, StatusOpen, p.Status, "its own row, not the old one of the same job id")
					return err
				})
				mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
				require.NoError(t, l.Close())
				require.Equal(t, before, dump(t, old))
			}
			_, err = old.Exec(`UPDATE htcjobs SET status = 7 WHERE jobId = '884426.0'`)
			require.NoError(t, err, "the old rows can still be changed by hand")
		})
	}
}

// dump is the public columns of every row, and uniqid's sum as a fingerprint.
func dump(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.Query(
		`SELECT quote(htcjobName) || quote(jobId) || quote(status) || quote(tempDir) FROM htcjobs ORDER BY rowid`,
	)
	require.NoError(t, err)
	var all []string
	require.NoError(t, eachRow(rows, func(row scanner) error {
		var s string
		err := row.Scan(&s)
		all = append(all, s)
		return err
	}))
	return all
}

func TestAFileOfALaterVersionIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	l, err := Open(context.Background(), path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	db := shell(t, path)
	_, err = db.Exec(
		`ALTER TABLE htcjobs ADD COLUMN later TEXT; ALTER TABLE runs ADD COLUMN later TEXT; PRAGMA user_version = 99`,
	)
	require.NoError(t, err)

	l, err = Open(context.Background(), path)
	require.NoError(t, err)
	insert(t, l, testRun("u1"))
	require.NoError(t, l.Close())
	var version int
	require.NoError(t, db.QueryRow(`PRAGMA user_version`).Scan(&version))
	require.Equal(t, 99, version)
}

func TestWhichRunsOfAnEarlierVersionWereRestored(t *testing.T) {
	l, path := openTemp(t)
	runs := map[string]Run{
		"sent":     testRun("sent"),
		"retried":  testRun("retried"),
		"restored": testRun("restored"),
		"refused":  testRun("refused"),
	}
	for uid, change := range map[string]func(*Run){
		"retried": func(r *Run) { r.Deferred = true }, "restored": func(r *Run) { r.Deferred, r.TokenHash = true, nil }, "refused": func(r *Run) { r.TokenHash = nil },
	} {
		r := runs[uid]
		change(&r)
		runs[uid] = r
	}
	for _, r := range runs {
		mustWrite(t, l, func(tx *Tx) error { return tx.InsertRun(r) })
	}
	require.NoError(t, l.Close())
	_, err := shell(
		t,
		path,
	).Exec(
		`DROP TRIGGER runs_deleted; DROP INDEX runs_factories; DROP VIEW attempts; ALTER TABLE runs DROP COLUMN restored; ALTER TABLE runs DROP COLUMN inputsDigest; ALTER TABLE runs DROP COLUMN secretInputs; ALTER TABLE runs DROP COLUMN itemsDigest; DROP INDEX runs_pool; ALTER TABLE runs DROP COLUMN pool; ALTER TABLE runs DROP COLUMN poolSpec; ALTER TABLE runs DROP COLUMN effective; DROP INDEX runs_kind; ALTER TABLE runs DROP COLUMN kind; DROP INDEX nodes_unfetched; ALTER TABLE nodes DROP COLUMN fetched; ALTER TABLE nodes DROP COLUMN usage;
		ALTER TABLE runs DROP COLUMN account; ALTER TABLE runs DROP COLUMN started; ALTER TABLE runs DROP COLUMN finished;
		ALTER TABLE runs DROP COLUMN sent; ALTER TABLE runs DROP COLUMN jobs; ALTER TABLE runs DROP COLUMN keptFailed; ALTER TABLE runs DROP COLUMN usage; ALTER TABLE runs DROP COLUMN earlier; ALTER TABLE htcjobs DROP COLUMN usage; DROP TABLE rules; ALTER TABLE nodes DROP COLUMN name; ALTER TABLE steps DROP COLUMN effective; ALTER TABLE runs DROP COLUMN factory; ALTER TABLE runs DROP COLUMN factoryIdle; ALTER TABLE runs DROP COLUMN unmade; ALTER TABLE runs DROP COLUMN unsent; PRAGMA user_version = 8`,
	)
	require.NoError(t, err)

	l, err = Open(context.Background(), path)
	require.NoError(t, err)
	defer l.Close()
	for uid := range runs {
		mustRead(t, l, func(tx *Tx) error {
			r, err := tx.Run(uid, 1)
			require.Equal(t, uid == "restored", r.Restored, uid)
			return err
		})
	}
}

func TestADamagedFileIsErrCorruptAndLeftAlone(t *testing.T) {
	damages := map[string]func(good []byte) []byte{
		"it is something else":           func([]byte) []byte { return []byte("this is a letter to my mother, and no database at all") },
		"it was cut short":               func(good []byte) []byte { return good[:len(good)/2] },
		"the schema page is overwritten": func(good []byte) []byte { copy(good[100:4096], make([]byte, 3996)); return good },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "htcjobs.db")
			l, err := Open(context.Background(), path)
			require.NoError(t, err)
			require.NoError(t, l.Close())
			good, err := os.ReadFile(path)
			require.NoError(t, err)
			bad := damage(good)
			require.NoError(t, os.WriteFile(path, bad, 0o600))

			_, err = Open(context.Background(), path)
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, path)
			require.False(t, IsUnavailable(err))
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, bad, after)
		})
	}
}

func TestAFileThatCannotBeOpenedIsUnavailable(t *testing.T) {
	_, err := Open(context.Background(), t.TempDir())
	require.Error(t, err)
	require.True(t, IsUnavailable(err), err)
	require.NotErrorIs(t, err, ErrCorrupt)
}

func TestTheFileIsSafeOnANetworkVolume(t *testing.T) {
	l, _ := openTemp(t)
	for pragma, want := range map[string]string{
		"journal_mode": "persist", "synchronous": "2", "foreign_keys": "1", "temp_store": "2",
		"locking_mode": "normal", "mmap_size": "0", "busy_timeout": "10000", "cache_spill": "0",
	} {
		var got string
		require.NoError(t, l.writer.sql.QueryRowContext(context.Background(), `PRAGMA `+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
}
