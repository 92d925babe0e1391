package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A backup is put back while htcd works. What would be sent next, the copy may know as little as the state in memory.
func TestACopyThatIsPutBackUnderTheLedgerIsNotWritten(t *testing.T) {
	for name, put := range map[string]func(t *testing.T, from, path string){
		"by htcd restore": func(t *testing.T, from, path string) {
			require.NoError(t, Restore(t.Context(), from, path, waits))
		},
		"by cp": func(t *testing.T, from, path string) {
			content, err := os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, content, 0o600))
		},
		"by cp, which has only begun": func(t *testing.T, _, path string) {
			require.NoError(t, os.Truncate(path, 0))
		},
	} {
		for kind, backup := range map[string]func(t *testing.T, path, to string){
			"a backup": func(t *testing.T, path, to string) { require.NoError(t, Backup(t.Context(), path, to, waits)) },
			"a copy of the file": func(t *testing.T, path, to string) {
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(to, content, 0o600))
			},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				l, path := openTemp(t)
				insert(t, l, testRun("a"))
				copied := filepath.Join(t.TempDir(), "copy.db")
				backup(t, path, copied)
				mustWrite(t, l, insertRun("b"))
				put(t, copied, path)
				before, err := os.ReadFile(path)
				require.NoError(t, err)
				for range 2 {
					require.ErrorIs(t, l.Write(t.Context(), insertRun("c")), ErrLost)
				}
				require.ErrorIs(t, l.Close(), ErrLost)
				after, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, before, after)
			})
		}
	}
}

func TestALedgerThatOthersHaveWrittenIsTheSame(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("a"))
	for _, statement := range []string{`UPDATE htcjobs SET status = 7`, `CREATE INDEX mine ON htcjobs (jobId)`, `VACUUM`} {
		_, err := shell(t, path).Exec(statement)
		require.NoError(t, err)
		mustWrite(t, l, insertRun(statement))
	}
	require.NoError(t, l.Close())
}

// The file that a connection has open may be of a volume that is gone, while another one is there.
func TestAConnectionThatCouldNotReadIsNotUsedAgain(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("a"))
	impatient, err := openDB(path, "_pragma=busy_timeout(1)&mode=rw")
	require.NoError(t, err)
	for range maxReaders {
		require.Nil(t, <-l.readers)
		c, err := connect(t.Context(), impatient)
		require.NoError(t, err)
		l.readers <- c
	}
	other, err := shell(t, path).Conn(t.Context())
	require.NoError(t, err)
	_, err = other.ExecContext(t.Context(), `BEGIN EXCLUSIVE`)
	require.NoError(t, err)
	for range maxReaders {
		err := l.Read(t.Context(), func(tx *Tx) error { _, err := tx.Runs(RunFilter{}); return err })
		require.True(t, IsUnavailable(err), err)
	}
	_, err = other.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	var kept []*conn
	for range maxReaders {
		kept = append(kept, <-l.readers)
		l.readers <- nil
	}
	require.Equal(t, make([]*conn, maxReaders), kept)
	require.NoError(t, impatient.Close())
	require.Equal(t, []string{"a"}, uids(t, l))
}
