package output

import (
	"archive/tar"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

var first = Attempt{Namespace: "physics", Name: "zero", Number: 1}

// put writes a file of a proc's output.
func put(t *testing.T, s Store, a Attempt, proc int, name, text string) {
	t.Helper()
	dir, err := s.ProcDir(a, proc)
	require.NoError(t, err)
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func read(t *testing.T, s Store, a Attempt, proc int, name string) (string, error) {
	t.Helper()
	f, err := s.Open(a, proc, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(text), nil
}

func TestAFileOfAProcIsOpened(t *testing.T) {
	s := Store{Root: t.TempDir()}
	put(t, s, first, 0, Stdout, "hello\n")
	put(t, s, first, 0, "plots/a.txt", "a")
	text, err := read(t, s, first, 0, Stdout)
	require.NoError(t, err)
	require.Equal(t, "hello\n", text)
	text, err = read(t, s, first, 0, "plots/a.txt")
	require.NoError(t, err)
	require.Equal(t, "a", text)
	_, err = s.Open(first, 0, Stderr)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = s.Open(first, 1, Stdout)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestNoPathLeadsOutOfAProcsDirectory(t *testing.T) {
	s := Store{Root: t.TempDir()}
	put(t, s, first, 0, Stdout, "mine")
	put(t, s, first, 1, "secret", "theirs")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("the ledger"), 0o600))
	dir, err := s.ProcDir(first, 0)
	require.NoError(t, err)
	for link, target := range map[string]string{
		"absolute": secret, "sideways": "../1/secret", "folder": "../1", "chain": "sideways", "everything": "/", "inside": Stdout,
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))

	for _, file := range []string{
		"../1/secret", "/etc/passwd", secret, "absolute", "sideways", "folder/secret", "chain", "everything/etc/passwd", "pipe", ".", "..", "",
	} {
		f, err := s.Open(first, 0, file)
		require.Error(t, err, file)
		require.Nil(t, f, file)
	}
	text, err := read(t, s, first, 0, "inside")
	require.NoError(t, err)
	require.Equal(t, "mine", text)

	var archive bytes.Buffer
	require.NoError(t, s.Archive(t.Context(), &archive, first, 0))
	require.Equal(t, map[string]string{"0/": "", "0/_condor_stdout": "mine"}, entries(t, &archive))
}

func entries(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	found := map[string]string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		text, err := io.ReadAll(tr)
		require.NoError(t, err)
		found[h.Name] = string(text)
	}
}

func TestAnArchiveHoldsWholeTrees(t *testing.T) {
	s := Store{Root: t.TempDir()}
	put(t, s, first, 0, Stdout, "a")
	put(t, s, first, 10, Stdout, "b")
	put(t, s, first, 10, "x/y/z", "c")
	put(t, s, first, 10, "d\xe9/f\xe9", "no UTF-8")
	var archive bytes.Buffer
	require.NoError(t, s.Archive(t.Context(), &archive, first))
	require.Equal(
		t,
		map[string]string{
			"0/":                "",
			"0/_condor_stdout":  "a",
			"10/":               "",
			"10/_condor_stdout": "b",
			"10/d\xe9/":         "",
			"10/d\xe9/f\xe9":    "no UTF-8",
			"10/x/":             "",
			"10/x/y/":           "",
			"10/x/y/z":          "c",
		},
		entries(t, &archive),
	)
	require.ErrorIs(t, s.Archive(t.Context(), io.Discard, first, 2), fs.ErrNotExist)
}

func TestAnArchiveOfOneFileHasItOfThoseThatLeftIt(t *testing.T) {
	s := Store{Root: t.TempDir()}
	for proc, files := range []map[string]string{
		{"plots/a": "a", "b": "large"},
		{"b": "large"},
		{"plots": "a file"},
		{"plots/a/b": "a directory"},
		{"plots/a": "e"},
	} {
		for file, text := range files {
			put(t, s, first, proc, file, text)
		}
	}
	put(t, s, first, 5, "other", "")
	dir, err := s.ProcDir(first, 5)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "plots"), 0o755))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "plots", "a")))
	var archive bytes.Buffer
	require.NoError(t, s.ArchiveFile(t.Context(), &archive, first, "plots/a", 0, 1, 2, 3, 4, 5))
	require.Equal(t, map[string]string{"0/plots/a": "a", "4/plots/a": "e"}, entries(t, &archive))
}

func TestFilesAreListedWithTheirSizes(t *testing.T) {
	s := Store{Root: t.TempDir()}
	a := Attempt{Namespace: "ns", Name: "zero", Number: 1}
	for _, proc := range []int{0, 10} {
		dir, err := s.ProcDir(a, proc)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "result", "empty"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "result", "x"), []byte("12345"), 0o600))
		require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	}
	var listed []string
	add := func(proc int, path string, size int64) error {
		listed = append(listed, fmt.Sprint(proc, " ", path, " ", size))
		return nil
	}
	require.NoError(t, s.Files(t.Context(), a, []int{0, 10}, add))
	require.Equal(t, []string{"0 result/x 5", "10 result/x 5"}, listed)
	require.ErrorIs(t, s.Files(t.Context(), a, []int{3}, add), fs.ErrNotExist)
}

func TestNamesAreChecked(t *testing.T) {
	s := Store{Root: t.TempDir()}
	for _, a := range []Attempt{
		{Namespace: "..", Name: "zero", Number: 1}, {Namespace: "physics", Name: "..", Number: 1}, {Namespace: "physics", Name: "", Number: 1},
		{Namespace: "a/b", Name: "zero", Number: 1}, {Namespace: "physics", Name: "zero", Number: 0}, {Namespace: "physics", Name: ".zero", Number: 1},
		{Namespace: "physics", Name: "zero\x00", Number: 1}, {Namespace: "", Name: "zero", Number: 1},
		{Namespace: "physics", Name: strings.Repeat("a", 254), Number: 1},
	} {
		_, err := s.AttemptDir(a)
		require.Error(t, err, "%+v", a)
		require.Error(t, s.DropAttempt(a), "%+v", a)
		_, err = s.Open(a, 0, Stdout)
		require.Error(t, err, "%+v", a)
	}
	require.Error(t, s.Drop("physics", ".."))
	require.Error(t, s.Drop("", ""))
	_, err := s.ProcDir(first, -1)
	require.Error(t, err)
}

func TestTheNewestAttemptIsTheLastWithOutput(t *testing.T) {
	s := Store{Root: t.TempDir()}
	_, err := s.Newest("physics", "zero")
	require.ErrorIs(t, err, fs.ErrNotExist)
	put(t, s, first, 0, Stdout, "1")
	second, third := first, first
	second.Number, third.Number = 2, 10
	put(t, s, second, 4, Stdout, "2")
	dir, err := s.AttemptDir(third) // nothing there yet
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))

	newest, err := s.Newest("physics", "zero")
	require.NoError(t, err)
	require.Equal(t, second, newest)
	attempts, err := s.Attempts("physics", "zero")
	require.NoError(t, err)
	require.Equal(t, []Attempt{first, second, third}, attempts)

	require.NoError(t, s.DropAttempt(second))
	newest, err = s.Newest("physics", "zero")
	require.NoError(t, err)
	require.Equal(t, first, newest)
	require.NoError(t, s.Drop("physics", "zero"))
	_, err = s.Newest("physics", "zero")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Drop("physics", "zero"))

	left, err := os.ReadDir(filepath.Join(s.Root, incoming))
	require.NoError(t, err)
	require.Len(t, left, 2)
	require.NoError(t, s.Sweep(false))
	left, err = os.ReadDir(filepath.Join(s.Root, incoming))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAFetchIsKeptProcByProc(t *testing.T) {
	s := Store{Root: t.TempDir()}
	put(t, s, first, 1, Stdout, "of an earlier fetch")
	fetch, err := s.Begin([]int{0, 1, 2})
	require.NoError(t, err)
	for _, proc := range []string{"0", "1"} {
		require.NoError(t, os.WriteFile(filepath.Join(fetch, proc, Stdout), []byte("new "+proc), 0o600))
	}
	require.NoError(t, Sync(fetch))
	for proc, want := range []bool{true, true, false} {
		arrived, err := Arrived(fetch, proc)
		require.NoError(t, err)
		require.Equal(t, want, arrived)
		if arrived {
			require.NoError(t, s.Keep(fetch, first, proc))
			require.NoError(t, s.Keep(fetch, first, proc), "a transaction may do it twice")
		}
	}
	for proc, want := range []bool{true, true, false} {
		has, err := s.Has(first, proc)
		require.NoError(t, err)
		require.Equal(t, want, has)
	}
	text, err := read(t, s, first, 1, Stdout)
	require.NoError(t, err)
	require.Equal(t, "new 1", text)
	again, err := s.Begin([]int{0})
	require.NoError(t, err)
	require.NotEqual(t, fetch, again)
	require.NoError(t, s.Sweep(false))
	require.DirExists(t, again)
	require.NoError(t, s.Sweep(true))
	require.NoDirExists(t, again)
	free, size, err := s.Volume()
	require.NoError(t, err)
	require.True(t, size.Holds(free))
	require.True(t, free.Holds(Room{1, 1}))
}

func TestTwoMayDropOutputAtOnce(t *testing.T) {
	s := Store{Root: t.TempDir()}
	done := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				done <- nil
				return
			default:
			}
			if err := s.Sweep(false); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 300 {
		put(t, s, first, 1, Stdout, "dropped")
		require.NoError(t, s.DropAttempt(first))
	}
	close(over)
	require.NoError(t, <-done)
	require.NoError(t, s.Sweep(false))
}

// A full volume has no room for a directory.
func TestNothingIsMadeForWhatIsDropped(t *testing.T) {
	s := Store{Root: t.TempDir()}
	_, err := s.Begin(nil)
	require.NoError(t, err)
	put(t, s, first, 0, Stdout, "dropped")
	seen, err := unix.InotifyInit1(unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(seen)
	_, err = unix.InotifyAddWatch(seen, filepath.Join(s.Root, incoming), unix.IN_CREATE)
	require.NoError(t, err)
	require.NoError(t, s.Drop("physics", "zero"))
	_, err = unix.Read(seen, make([]byte, 4096))
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoDirExists(t, filepath.Join(s.Root, "physics", "zero"))
}

func TestWhatOutputLeavesFree(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int64
		size  Room
		want  Room
	}{
		"of a small volume a tenth":    {0, Room{1 << 30, 1000}, Room{1 << 30 / 10, 100}},
		"of a great one no more":       {0, Room{1 << 40, 1 << 30}, Room{1 << 30, 10_000}},
		"what the administrator wants": {5 << 30, Room{6 << 30, 1000}, Room{5 << 30, 100}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Reserve(c.bytes, c.size)) })
	}
}

func TestTail(t *testing.T) {
	for name, c := range map[string]struct {
		text        string
		lines, size int
		want        string
	}{
		"an empty file":                        {"", 3, 100, ""},
		"fewer lines than asked":               {"a\nb\n", 3, 100, "a\nb"},
		"as many lines":                        {"a\nb\nc\n", 3, 100, "a\nb\nc"},
		"more lines":                           {"a\nb\nc\nd\n", 3, 100, "b\nc\nd"},
		"no line break at the end":             {"a\nb\nc\nd", 2, 100, "c\nd"},
		"any number of lines":                  {"a\nb\n", 0, 100, "a\nb"},
		"a long line is cut at its beginning":  {strings.Repeat("x", 50) + "end\n", 3, 5, "xend"},
		"a character is not cut":               {"ééééé", 3, 5, "éé"},
		"what is no UTF-8 is shown as such":    {"a\xffb\n", 3, 100, "a?b"},
		"a terminal's commands do nothing":     {"\x1b[31mred\x00\r\n", 3, 100, "?[31mred?"},
		"characters that turn text are no use": {"a\u202eb", 3, 100, "a?b"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			got, err := Tail(f, c.lines, c.size)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestNamesThatHTCondorDoesNotBringAreGivenBack(t *testing.T) {
	s := Store{t.TempDir()}
	fetch, err := s.Begin([]int{0, 1})
	require.NoError(t, err)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(fetch, "0", name), []byte(text), 0o600))
	}
	write("there", "as it was")
	names := []string{"a,b", "c\nd", "../out", "/tmp/out", "", "..", "there", "a,b", "last"}
	for i := range names {
		write(shelteredFile+strconv.Itoa(i), strconv.Itoa(i))
	}
	write(shelteredNames, strings.Join(names, "\x00")+"\x00and one without a file\x00")
	require.NoError(t, RestoreNames(fetch, 0))
	require.NoError(t, RestoreNames(fetch, 1), "nothing was renamed there")
	entries, err := os.ReadDir(filepath.Join(fetch, "0"))
	require.NoError(t, err)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	require.ElementsMatch(
		t,
		[]string{"a,b", "c\nd", "last", "there", shelteredFile + "2", shelteredFile + "3", shelteredFile + "4",
			shelteredFile + "5", shelteredFile + "6", shelteredFile + "7"},
		found,
	)
	text, err := os.ReadFile(filepath.Join(fetch, "0", "there"))
	require.NoError(t, err)
	require.Equal(t, "as it was", string(text))
}

func TestOfAListOfNamesNoMoreIsReadThanTheFilesThatCameCanHave(t *testing.T) {
	long := strings.Repeat("é", 127) + "x" // 255 bytes
	for name, c := range map[string]struct {
		files int
		list  string
		want  []string
	}{
		"none came":                      {0, strings.Repeat("\x00", 16<<20), nil},
		"empty names":                    {3, strings.Repeat("\x00", 16<<20), []string{"", "", ""}},
		"the longest names":              {2, long + "\x00" + long + "\x00", []string{long, long}},
		"a name that is too long":        {2, "a\x00" + strings.Repeat("x", 256) + "\x00c\x00", []string{"a"}},
		"one name without end":           {1, strings.Repeat("x", 16<<20), nil},
		"the last one was cut off":       {2, "a\x00b", []string{"a"}},
		"more names than files":          {1, "a\x00b\x00", []string{"a"}},
		"fewer names than files":         {3, "a\x00", []string{"a"}},
		"more than the buffer, in parts": {4, "a\x00" + long + "\x00b\x00" + long + "\x00", []string{"a", long, "b", long}},
	} {
		list := strings.NewReader(c.list)
		var got []string
		require.NoError(t, eachListed(list, c.files, func(name string) error {
			got = append(got, name)
			return nil
		}), name)
		require.Equal(t, c.want, got, name)
		require.LessOrEqual(t, len(c.list)-list.Len(), c.files*256, "%s: bytes read", name)
	}
}

func TestAListOf16MiBOfNULsCostsNothing(t *testing.T) {
	s := Store{t.TempDir()}
	fetch, err := s.Begin([]int{0})
	require.NoError(t, err)
	list := filepath.Join(fetch, "0", shelteredNames)
	require.NoError(t, os.WriteFile(list, nil, 0o600))
	require.NoError(t, os.Truncate(list, 16<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = RestoreNames(fetch, 0)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<10), "bytes")
	require.Less(t, after.Mallocs-before.Mallocs, uint64(1000), "allocations")
	require.NoFileExists(t, list)
}

func TestAFullVolumeIsRecognised(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "small.db"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "PRAGMA max_page_count=1; CREATE TABLE t (n)")
	for name, full := range map[string]error{
		"no space":      fmt.Errorf("stage job: %w", unix.ENOSPC),
		"a quota":       &fs.PathError{Op: "write", Path: "/data/x", Err: unix.EDQUOT},
		"SQLite's":      err,
		"a tool's":      errors.New("writing to file x: (errno 28) No space left on device"),
		"a tool's, too": errors.New("writing to file x: (errno 122) Disk quota exceeded"),
	} {
		require.True(t, Full(full), "%s: %v", name, full)
	}
	require.False(t, Full(unix.EACCES))
	require.False(t, Full(nil))
}

func TestDeclaredOutputGetsItsOwnPaths(t *testing.T) {
	s := Store{t.TempDir()}
	fetch, err := s.Begin([]int{0, 1, 2, 3})
	require.NoError(t, err)
	write := func(name, text string) {
		file := filepath.Join(fetch, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("0/_condor_stdout", "out")
	write("0/.htcd-out/10/result/a,b.root", "a")
	write("0/.htcd-out/10/c\nd", "c")
	write("0/.htcd-out/9/earlier", "e")
	write("0/.htcd-out/011/odd", "e")
	write("0/.htcd-out/12", "a file")
	write("0/.htcd-ckpt/state/n", "3")
	write("1/_condor_stdout", "out")
	write("1/.htcd-out/0/_condor_stdout", "another")
	write("1/.htcd-out/0/f", "f")
	write("2/.htcd-out", "a file")
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(fetch, "3", ".htcd-out")))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "x"), nil, 0o600))
	for proc := range 4 {
		require.NoError(t, Unpack(fetch, proc))
	}
	for name, want := range map[string]string{
		"0/result/a,b.root": "a", "0/c\nd": "c", "0/_condor_stdout": "out",
		"1/f": "f", "1/_condor_stdout": "out", "1/.htcd-out/0/_condor_stdout": "another", "2/.htcd-out": "a file",
	} {
		text, err := os.ReadFile(filepath.Join(fetch, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
	require.NoDirExists(t, filepath.Join(fetch, "0", ".htcd-out"))
	require.NoDirExists(t, filepath.Join(fetch, "0", ".htcd-ckpt"))
	require.NoFileExists(t, filepath.Join(fetch, "0", "earlier"))
	require.NoFileExists(t, filepath.Join(fetch, "3", "x"))
	require.FileExists(t, filepath.Join(outside, "x"))
}
