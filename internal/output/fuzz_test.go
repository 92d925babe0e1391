package output

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzWhatComesFromANode makes what HTCondor may bring of a job: files, directories and links of names that mean
// something here, and any list of names. Nothing outside of the job's directory changes, no file is there twice, and
// little memory is taken.
func FuzzWhatComesFromANode(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x14\x25"), []byte("a,b\x00../../out\x00\x00..\x00"))
	f.Add([]byte("\x10\x11\x12\x23\x24\x25\x26\x27"), []byte("a\x00a\x00.htcd-out\x00.htcd-name-1\x00"))
	f.Add([]byte("\x20\x31\x42\x53\x64"), []byte(strings.Repeat("\x00", 2000)))
	f.Add([]byte("\x09\x19\x29\x39"), []byte(strings.Repeat("x", 256)+"\x00"))
	names := []string{
		".htcd-name-0",
		".htcd-name-1",
		".htcd-name-2",
		".htcd-out",
		".htcd-out/0",
		".htcd-out/1",
		".htcd-out/1/a",
		".htcd-out/1/d/b",
		".htcd-out/01",
		".htcd-out/1/.htcd-out",
		"a",
		"d",
		"d/b",
		".htcd-names",
		"_condor_stdout",
		".htcd-out/99999999999999999999",
	}
	f.Fuzz(func(t *testing.T, made, list []byte) {
		top := t.TempDir()
		outside := filepath.Join(top, "outside")
		s := Store{filepath.Join(top, "store")}
		fetch, err := s.Begin([]int{0})
		require.NoError(t, err)
		dir := filepath.Join(fetch, "0")
		require.NoError(t, os.Mkdir(outside, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(outside, "a"), []byte("outside"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, shelteredNames), list, 0o600))
		for i, b := range made[:min(len(made), 64)] {
			path := filepath.Join(dir, names[b&15])
			if parent, err := filepath.EvalSymlinks(
				filepath.Dir(path),
			); err != nil ||
				!strings.HasPrefix(parent+"/", dir+"/") {
				continue
			}
			switch b >> 4 & 7 {
			case 0, 1, 2, 3:
				_ = os.WriteFile(path+".", []byte(strconv.Itoa(i)), 0o600)
				_ = os.Rename(path+".", path)
			case 4, 5:
				_ = os.Mkdir(path, 0o700)
			case 6:
				_ = os.Symlink(outside, path)
			case 7:
				_ = os.Symlink(filepath.Join(outside, "a"), path)
			}
		}
		before := content(t, dir)
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		restored, unpacked := RestoreNames(fetch, 0), Unpack(fetch, 0)
		runtime.ReadMemStats(&end)
		require.NoError(t, restored)
		require.NoError(t, unpacked)
		require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(1<<20))
		require.Equal(t, map[string]int{"outside": 1}, content(t, outside))
		entries, err := os.ReadDir(top)
		require.NoError(t, err)
		require.Len(t, entries, 2)
		for text, n := range content(t, dir) {
			require.LessOrEqual(t, n, before[text], "%q is there more often than it came", text)
		}
	})
}

// content counts the regular files below a directory by what is in them.
func content(t *testing.T, dir string) map[string]int {
	t.Helper()
	found := map[string]int{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		found[string(text)]++
		return err
	}))
	return found
}
