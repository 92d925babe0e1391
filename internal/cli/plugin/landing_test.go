package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnArchiveLands(t *testing.T) {
	dir := t.TempDir()
	l, err := land(
		t,
		dir,
		archived(
			t,
			"0/",
			"",
			"0/_condor_stdout",
			"out",
			"0/a/",
			"",
			"0/a/b",
			"c",
			"10/",
			"",
			"10/_condor_stderr",
			"err",
			"10/stderr",
			"own",
		),
	)
	require.NoError(t, err)
	require.Equal(t, 2, l.came)
	want := map[string]string{"0/stdout": "out", "0/a/b": "c", "10/_condor_stderr": "err", "10/stderr": "own"}
	require.Equal(t, want, tree(t, dir))

	l, err = land(t, dir, archived(t, "0/", "", "0/x", "again", "11/", "", "11/y", "new"))
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{l.came, l.there})
	want["11/y"] = "new"
	require.Equal(t, want, tree(t, dir))

	require.Equal(t, []int{1}, func() []int { l.jobs, l.only = 12, 1; return l.missing() }())
	l.only = -1
	require.Equal(t, "1-10", ranges(l.missing()))

	for _, force := range []bool{false, true} {
		for name, other := range map[string]origin{
			"another attempt": {HTCJob: "ns/zero", UID: "u", Attempt: 2}, "another HTCJob": {HTCJob: "ns/one", UID: "v", Attempt: 1},
			"a later one of the name": {HTCJob: "ns/zero", UID: "v", Attempt: 1},
		} {
			_, err = land(
				t,
				dir,
				archived(t, "0/", "", "0/x", "2"),
				func(l *landing) { l.origin, l.force = other, force },
			)
			require.ErrorContains(t, err, "other output", name)
			require.Equal(t, want, tree(t, dir), name)
		}
	}
}

func TestNodesLandByTheirNames(t *testing.T) {
	dir := t.TempDir()
	entries := []string{"3/", "# a/job_0", "3/_condor_stdout", "out", "7/", "# b/job_0/1", "7/a/", "", "7/a/b", "c"}
	nodes := func(l *landing) { l.nodes, l.jobs = true, 3 }
	for i := range 2 {
		l, err := land(t, dir, archived(t, entries...), nodes)
		require.NoError(t, err)
		require.Equal(t, []int{2 - 2*i, 2 * i}, []int{l.came, l.there})
		require.Equal(t, "1", l.lacks())
	}
	require.Equal(t, map[string]string{"a/job_0/stdout": "out", "b/job_0/1/a/b": "c"}, tree(t, dir))
	for _, name := range []string{"", "../x", "/x", ".htcd-output", "a/job_0"} {
		_, err := land(t, dir, archived(t, "9/", "# "+name, "9/_condor_stdout", "other"), nodes)
		require.Equal(t, name == "a/job_0", err == nil, name)
	}
	require.Len(t, tree(t, dir), 2)
	_, err := land(t, dir, archived(t, "3/x", "no directory first"), nodes)
	require.Error(t, err)
}

func TestWhatIsThereIsNotReplaced(t *testing.T) {
	for _, force := range []bool{false, true} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "0"), 0o755))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "2024"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "0", "mine"), []byte("mine"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "2024", "thesis"), []byte("mine"), 0o644))
		for range 2 { // the second time the directory is taken for this attempt
			_, err := land(t, dir, archived(t, "0/", "", "0/x", "theirs"), func(l *landing) { l.force = force })
			require.ErrorContains(t, err, "exists already")
			require.Equal(t, map[string]string{"0/mine": "mine", "2024/thesis": "mine"}, tree(t, dir))
		}
	}
}

func TestForceReplacesWhatWasBroughtAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	odd := "a,b \xff\n\"-ü"
	archive := archived(
		t,
		"0/",
		"",
		"0/_condor_stdout",
		"out",
		"0/sub/",
		"",
		"0/sub/"+odd,
		"odd",
		"1/",
		"",
		"1/x",
		"one",
	)
	_, err := land(t, dir, archive)
	require.NoError(t, err)
	put := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, name := range []string{"0/mine", "0/sub/mine", "2024/mine", "mine"} {
		put(name, "mine")
	}
	put("0/stdout", "spoilt")
	require.NoError(t, os.Remove(filepath.Join(dir, "0", "sub", odd)))
	want := map[string]string{
		"0/stdout":     "out",
		"0/sub/" + odd: "odd",
		"1/x":          "one",
		"0/mine":       "mine",
		"0/sub/mine":   "mine",
		"2024/mine":    "mine",
		"mine":         "mine",
	}
	for range 2 {
		l, err := land(t, dir, archive, func(l *landing) { l.force = true })
		require.NoError(t, err)
		require.Equal(t, 2, l.came)
		require.Equal(t, want, tree(t, dir))
	}

	// Somebody's file has a name that the job now uses: it is in the way, and nothing changes.
	_, err = land(
		t,
		dir,
		archived(t, "0/", "", "0/_condor_stdout", "new", "0/mine", "theirs"),
		func(l *landing) { l.force = true },
	)
	require.ErrorContains(t, err, "0/mine exists already")
	require.Equal(t, want, tree(t, dir))

	// A manifest that was cut off within a line is valid up to there.
	manifest, err := os.OpenFile(filepath.Join(dir, originFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = manifest.WriteString(`"0/mi`)
	require.NoError(t, err)
	require.NoError(t, manifest.Close())
	_, err = land(t, dir, archived(t, "2/", "", "2/x", "two"))
	require.NoError(t, err)
	l, err := land(t, dir, archive)
	require.NoError(t, err)
	require.True(t, l.wrote["2/x"])
	require.Equal(t, 2, l.there)
}

func TestNothingLandsOutside(t *testing.T) {
	for name, entries := range map[string][]string{
		"above":                      {"0/", "", "0/../../evil", "x"},
		"an absolute path":           {"/etc/evil", "x"},
		"beside the jobs":            {"evil", "x"},
		"a job with a sign":          {"+1/x", "x"},
		"a job with a zero":          {"01/x", "x"},
		"a job below none":           {"-1/x", "x"},
		"a job that is a file":       {"0", "x"},
		"dots":                       {"../evil", "x"},
		"the note of whose it is":    {originFile, "x"},
		"a link out":                 {"0/", "", "0/link", "-> /etc"},
		"a link and then through it": {"0/", "", "0/link", "-> ..", "0/link/evil", "x"},
		"a hard link":                {"0/", "", "0/link", "=> /etc/passwd"},
		"a file twice":               {"0/", "", "0/x", "1", "0/x", "2"},
		"a job out of its turn":      {"1/", "", "1/x", "1", "0/", "", "0/x", "2"},
		"a job once more":            {"1/", "", "2/", "", "1/", "", "1/x", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			dir := filepath.Join(around, "dir")
			require.NoError(t, os.Mkdir(dir, 0o755))
			_, err := land(t, dir, archived(t, entries...))
			require.Error(t, err)
			require.False(t, passing(err), "trying again does not help: %v", err)
			for file := range tree(t, around) {
				require.Regexp(t, `^dir/\d+/x$`, file, "what is complete may stay")
			}
			left, err := filepath.Glob(filepath.Join(dir, ".htcd-*.part"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	// An existing link leads nowhere either.
	dir, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, part(0))))
	_, err := land(t, dir, archived(t, "0/", "", "0/x", "x"))
	require.NoError(t, err)
	require.Empty(t, tree(t, elsewhere))
}
