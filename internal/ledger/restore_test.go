package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARestoredLedgerIsTheCopyAndKeepsWhatWasThere(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("first"))
	dir := t.TempDir()
	copied := filepath.Join(dir, "copy 1.db")
	require.NoError(t, Backup(t.Context(), path, copied, waits))
	second := testRun("second")
	second.Cluster = 200
	insert(t, l, second)
	require.NoError(t, l.Close())
	// A writer that died has left a journal, of the pages of the ledger that is replaced.
	require.NoError(t, os.WriteFile(path+"-journal", []byte("of the ledger before"), 0o600))

	runs := func(path string) (n int) {
		t.Helper()
		require.NoError(t, shell(t, path).QueryRow(`SELECT count(*) FROM runs`).Scan(&n))
		return n
	}
	for range 2 {
		require.NoError(t, Restore(t.Context(), copied, path, waits))
		require.Equal(t, 1, runs(path))
		require.NoFileExists(t, path+"-journal")
		require.FileExists(t, copied)
	}
	require.FileExists(t, path+Replaced)

	lost := filepath.Join(dir, "new", "htcjobs.db")
	require.NoError(t, Restore(t.Context(), copied, lost, waits), "there is none")
	require.Equal(t, 1, runs(lost))
}

func TestWhatIsNoLedgerIsNotRestored(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("u"))
	require.NoError(t, l.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	files := func() (names []string) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	there := files()
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	_, err = shell(t, other).Exec(`CREATE TABLE x (y)`)
	require.NoError(t, err)
	for name, content := range map[string][]byte{"empty": nil, "damaged": append(append([]byte{}, before[:4096]...), make([]byte, len(before)-4096)...), "text": []byte("no database, but long enough to look like one of them")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	for _, from := range []string{other, filepath.Join(dir, "empty"), filepath.Join(dir, "damaged"), filepath.Join(dir, "text"), filepath.Join(dir, "missing"), path} {
		require.Error(t, Restore(t.Context(), from, path, waits), from)
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, there, files())
}

// A restore can be interrupted between its steps, with the ledger still there that a writer has left half written.
func TestTheLedgerThatIsSetAsideIsWhole(t *testing.T) {
	l, path := openTemp(t)
	for i := range 200 {
		insert(t, l, testRun(fmt.Sprint("run-", i)))
	}
	require.NoError(t, l.Close())
	// A writer whose pages are on disk before its commit, as they are while it commits.
	db, err := openDB(path, allPragmas+"&_pragma=journal_mode(PERSIST)&_pragma=cache_size(1)&_pragma=cache_spill(1)")
	require.NoError(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec(`DELETE FROM runs`)
	require.NoError(t, err)
	died := filepath.Join(t.TempDir(), "htcjobs.db")
	for _, suffix := range []string{"", journalSuffix} {
		content, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(died+suffix, content, 0o600))
	}
	require.NoError(t, tx.Rollback())
	require.NoError(t, db.Close())

	require.NoError(t, setAside(t.Context(), died))
	for _, name := range []string{died, died + Replaced} {
		require.NoError(t, os.RemoveAll(died+Replaced+journalSuffix))
		var n int
		require.NoError(t, shell(t, name).QueryRow(`SELECT count(*) FROM runs`).Scan(&n))
		require.Equal(t, 200, n)
		require.NoError(t, examine(t.Context(), name))
	}
}
