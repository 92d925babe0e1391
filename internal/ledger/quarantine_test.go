package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADamagedFileIsPutAsideWithItsJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	require.NoError(t, os.WriteFile(path, []byte("garbage, and plenty of it"), 0o600))
	_, err := Open(t.Context(), path)
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, os.WriteFile(path+"-journal", []byte("of the garbage"), 0o600))

	aside, err := Quarantine(path, noon)
	require.NoError(t, err)
	require.Equal(t, path+".damaged-20261120T120000Z", aside)
	for file, holds := range map[string]string{aside: "garbage, and plenty of it", aside + "-journal": "of the garbage"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, holds, string(text))
	}
	l, err := Open(t.Context(), path)
	require.NoError(t, err)
	insert(t, l, testRun("a"))
	require.NoError(t, l.Close())

	require.NoError(t, os.WriteFile(path, []byte("garbage again"), 0o600))
	_, err = Quarantine(path, noon)
	require.ErrorContains(t, err, "already exists", "what was put aside is never written over")
}

func TestAFileRemovedUnderTheLedgerIsLost(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("a"))
	require.NoError(t, os.Remove(path))
	for range 2 {
		err := l.Write(t.Context(), func(tx *Tx) error { return tx.InsertRun(testRun("b")) })
		require.ErrorIs(t, err, ErrLost)
		require.False(t, IsUnavailable(err), "trying again cannot help")
	}
	require.NoFileExists(t, path, "only Open makes one")
}

func TestAVolumeThatIsAwayIsUnavailableAndPasses(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("a"))
	dir := filepath.Dir(path)
	write := func(uid string) error {
		return l.Write(t.Context(), func(tx *Tx) error { return tx.InsertRun(testRun(uid)) })
	}
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.True(t, IsUnavailable(write("b")))
	require.ErrorIs(t, write("b"), errAway)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.True(t, IsUnavailable(write("b")), "an empty directory in its place is not the volume")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	require.NoError(t, write("b"))
}
