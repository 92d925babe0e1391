package submit

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leavingApptainer puts the tree beside the job's directory into the script's.
const leavingApptainer = `#!/bin/sh
` + enterFake + `
tree=$_CONDOR_SCRATCH_DIR/../tree
for f in "$tree"/* "$tree"/.[!.]*; do
	[ -e "$f" ] || [ -h "$f" ] || continue
	mv -f "$f" . 2>/dev/null || :
done
`

// secretWord stands in whatever is not to be had.
const secretWord = "WORD-from-outside"

var (
	leftNames = []string{
		"a",
		"b",
		"c",
		"d",
		"e,f",
		" g ",
		"-h",
		"line\nend",
		"result",
		"plots",
		"script",
		"tmp",
		"var",
		"token",
		"htcd-send",
		".htcd",
		".htcd-out",
		".htcd-names",
		".htcd-name-0",
		".htcd-results",
		".credential-x",
		"_condor_stdout",
		"_condor_stderr",
		".job.ad",
		"job.sh",
		"in",
		"*",
		"$$(X)",
		".hidden",
	}
	leftTargets = []string{
		"a",
		"b",
		"c",
		"d",
		"../a",
		"../b/c",
		"a/b",
		"./b/../c",
		".",
		"..",
		"../..",
		"/",
		"",
		"nowhere",
		"in",
		".job.ad",
		"_condor_stdout",
		"@OUT@/file",
		"@OUT@",
		"@OUT@/dir",
		"@OUT@/dir/file",
		"../outside/file",
		"../../outside/file",
		"../../../outside/file",
		"../../../../outside/file",
		"@DIR@/a",
		"@DIR@/b/c",
		"@DIR@",
		"@DIR@/.htcd",
		"@DIR@/.htcd/token",
		"@DIR@/.htcd/held",
		"@DIR@/.job.ad",
		"@DIR@/../outside/file",
		"/proc/self/root@OUT@/file",
		"/proc/self/cwd/../outside/file",
		"/proc/1/root@OUT@/file",
		"/proc/self/fd/1",
		"/etc/passwd",
		"../tree",
		"back/file",
		"back",
	}
	leftOutputs = [][]string{
		nil,
		{"*"},
		{"a"},
		{"a", "b", "c", "d"},
		{"*/*"},
		{"*/*/*"},
		{"a/b", "plots", "result"},
		{"plots/*", "d/*/c", "b*"},
		{"in", "result"},
	}
)

// plant makes what the bytes say: 4 of them for each thing.
func plant(root string, ops []byte) {
	tree := filepath.Join(root, "tree")
	fill := func(s string) string {
		return strings.NewReplacer("@OUT@", filepath.Join(root, "outside"), "@DIR@", filepath.Join(root, "dir")).
			Replace(s)
	}
	for ; len(ops) >= 4; ops = ops[4:] {
		kind, target := ops[0], fill(leftTargets[int(ops[3])%len(leftTargets)])
		path := filepath.Join(tree, leftNames[int(ops[1])%len(leftNames)])
		if kind&0x40 != 0 {
			path = filepath.Join(path, leftNames[int(ops[2])%len(leftNames)])
		}
		if kind&0x80 != 0 {
			path = filepath.Join(path, leftNames[int(ops[2]>>4)])
		}
		if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && real != tree &&
			!strings.HasPrefix(real, tree+"/") {
			continue // the container would have it elsewhere
		}
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		switch kind % 8 {
		case 0, 1, 2:
			_ = os.Symlink(target, path)
		case 3:
			if _, err := os.Lstat(path); err != nil { // not through a link
				_ = os.WriteFile(path, []byte("ordinary\n"), 0o600)
			}
		case 4:
			_ = os.Mkdir(path, 0o700)
		case 5:
			_ = os.Link(filepath.Join(tree, leftNames[int(ops[3])%len(leftNames)]), path)
		case 6:
			_ = syscall.Mkfifo(path, 0o600)
		case 7:
			if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
				_ = os.Chmod(path, fs.FileMode(ops[3])<<1)
			}
		}
	}
}

// accomplice holds the directories below dir, as a process to which the script has passed them could, and changes names
// in them until stop.
func accomplice(root string, stop <-chan struct{}) *sync.WaitGroup {
	var held []*os.File
	_ = filepath.WalkDir(filepath.Join(root, "tree"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && len(held) < 32 {
			if f, err := os.Open(path); err == nil {
				held = append(held, f)
			}
		}
		return nil
	})
	var ended sync.WaitGroup
	ended.Go(func() {
		defer func() {
			for _, f := range held {
				_ = f.Close()
			}
		}()
		pace := time.NewTicker(time.Millisecond) // leaves the processor to the wrapper
		defer pace.Stop()
		next := pace.C
		if os.Getenv("TEST_ALL") != "" {
			at := make(chan time.Time)
			close(at)
			next = at // at once
		}
		job := false
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-next:
			}
			if !job {
				if f, err := os.Open(filepath.Join(root, "dir", ".htcd", "job")); err == nil {
					held, job = append(held, f), true
				}
			}
			for _, f := range held {
				in := func(name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), name) }
				name := in(leftNames[n%10])
				aside := in(fmt.Sprint(".aside-", n%3))
				_ = os.RemoveAll(aside)
				_ = os.Rename(name, aside)
				_ = os.Symlink(filepath.Join(root, "outside", []string{"file", "dir", "."}[n%3]), name)
				if n%2 == 0 {
					_ = os.Remove(name)
					_ = os.Rename(aside, name)
				}
			}
		}
	})
	return &ended
}

// leaves runs the wrapper for a script that leaves what ops say, and reports what HTCondor would bring back from
// outside.
func leaves(t *testing.T, outputs []string, ops []byte, flips bool) {
	d := description()
	d.Source, d.Command, d.CallbackURL, d.Outputs = "true\n", "sh", "", outputsOf(outputs...)
	s := node(
		t,
		d,
		map[string]string{"apptainer": leavingApptainer, "sh": "", "find": "", "readlink": "", "ln": "", "stat": ""},
	)
	root := filepath.Dir(s.dir)
	for path, text := range map[string]string{"outside/file": secretWord, "outside/dir/file": secretWord, "outside/dir/result": secretWord, "outside/a": secretWord,
		"outside/b": secretWord, "dir/_condor_stdout": "printed\n", "dir/_condor_stderr": "", "dir/in": "input\n", "tree/ordinary": "ordinary\n"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	if len(outputs) > 0 {
		s.ad(t, `TransferOutput = ".htcd-out"`)
	}
	plant(root, ops)
	if flips {
		stop := make(chan struct{})
		ended := accomplice(root, stop)
		defer ended.Wait()
		defer close(stop)
	}
	s.shell = []string{"/bin/sh", "-c", `ulimit -v 65536 && exec /bin/sh "$@"`, "sh"} // 64 MiB for each process
	cmd := s.command()
	out, err := cmd.CombinedOutput()
	require.NotRegexp(t, "(?i)memory|allocat", string(out))
	var exit *exec.ExitError
	require.True(t, err == nil || errors.As(err, &exit), "%v", err)
	require.NotContains(t, string(out), secretWord)
	judge(t, s.dir, outputs)
	for path := range map[string]bool{"outside/file": true, "outside/dir/file": true, "outside/a": true} {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err, "it is not touched")
		require.Equal(t, secretWord, string(text))
	}
}

// judge follows every link that HTCondor would follow.
func judge(t *testing.T, dir string, outputs []string) {
	t.Helper()
	top := dir
	if len(outputs) > 0 {
		top = filepath.Join(dir, ".htcd-out")
	}
	seen := 0
	var walk func(path string, depth int)
	walk = func(path string, depth int) {
		entries, err := os.ReadDir(path)
		require.NoError(t, err, path)
		for _, entry := range entries {
			at := filepath.Join(path, entry.Name())
			real, err := filepath.EvalSymlinks(at)
			require.NoError(t, err, "a link to nowhere: %s", at)
			require.True(t, strings.HasPrefix(real, dir+"/"), "%s leads to %s", at, real)
			info, err := os.Stat(at)
			require.NoError(t, err)
			switch {
			case info.IsDir():
				if depth < 20 && (len(outputs) > 0 || entry.Type()&fs.ModeSymlink != 0) {
					walk(at, depth+1)
				}
			default:
				require.True(t, info.Mode().IsRegular(), at)
				text, err := os.ReadFile(at)
				if !errors.Is(err, os.ErrPermission) {
					require.NoError(t, err)
				}
				require.False(t, bytes.Contains(text, []byte(secretWord)), at)
				seen++
			}
		}
	}
	walk(top, 0)
	if len(outputs) == 0 {
		require.Positive(t, seen)
		text, err := os.ReadFile(filepath.Join(dir, "ordinary"))
		require.NoError(t, err)
		require.Equal(t, "ordinary\n", string(text))
	}
}

// Whatever a script leaves, and whoever changes it meanwhile, HTCondor finds nothing from outside of the job's
// directory:
//
//	go test ./internal/schedd/submit -run xxx -fuzz FuzzWhatAScriptLeaves -fuzztime 1h
func FuzzWhatAScriptLeaves(f *testing.F) {
	f.Add(byte(0), false, []byte{0, 0, 0, 17, 0, 1, 0, 21, 0, 2, 0, 33, 4, 3, 0, 0, 0x40, 3, 0, 17, 0, 8, 0, 18})
	f.Add(byte(4), true, []byte{0x43, 0, 1, 0, 0x43, 1, 2, 0, 0x40, 0, 8, 18, 0, 9, 0, 0, 0xc3, 3, 0x21, 0})
	f.Add(byte(7), true, []byte{0, 9, 0, 19, 0x40, 3, 2, 18, 7, 3, 0, 0, 6, 1, 0, 0, 0x45, 0, 1, 8})
	f.Add(byte(1), false, []byte{0, 0, 0, 6}) // a leads to a/b
	f.Fuzz(func(t *testing.T, outputs byte, flips bool, ops []byte) {
		leaves(t, leftOutputs[int(outputs)%len(leftOutputs)], ops[:min(len(ops), 400)], flips)
	})
}

var (
	leaveFor = flag.Duration(
		"leave-for",
		0,
		"how long TestWhateverAScriptLeavesLeadsNowhere tries random trees; 0: two of them, with TEST_ALL five",
	)
	leaveSeed = flag.Int64("leave-seed", 1, "the seed of the first tree; 0: the clock")
)

// The same with random trees, on a machine on which one takes more than the ten seconds that a fuzzer allows:
//
//	go test ./internal/schedd/submit -run TestWhateverAScriptLeavesLeadsNowhere -v -timeout 0 -leave-for 1h -leave-seed 0
func TestWhateverAScriptLeavesLeadsNowhere(t *testing.T) {
	if *leaveSeed == 0 {
		*leaveSeed = time.Now().UnixNano()
	}
	tried, few := 0, 2
	if os.Getenv("TEST_ALL") != "" {
		few = 5
	}
	for began := time.Now(); tried < few || time.Since(began) < *leaveFor; tried++ {
		seed := *leaveSeed + int64(tried)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			ops := make([]byte, 4*(1+random.Intn(60)))
			random.Read(ops)
			leaves(t, leftOutputs[random.Intn(len(leftOutputs))], ops, random.Intn(2) == 0)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d trees", tried)
}

// For each list of outputs the wrapper is tried while somebody changes names, and while nobody does; without TEST_ALL
// in one of these ways, in turn.
func TestTheWrapperLeavesNoWayOut(t *testing.T) {
	for _, flips := range []bool{false, true} {
		for i, outputs := range leftOutputs {
			if flips == (i%2 == 0) && os.Getenv("TEST_ALL") == "" {
				continue
			}
			t.Run(fmt.Sprint(outputs, flips), func(t *testing.T) {
				t.Parallel()
				var ops []byte // every target under some name, at the top and below
				for target := range leftTargets {
					name := byte(target + i)
					ops = append(
						ops,
						0,
						name,
						0,
						byte(target),
						0x40,
						name+7,
						name+3,
						byte(target),
						0x43,
						name,
						8,
						0,
						0x80,
						name+2,
						0x43,
						byte(target),
					)
				}
				leaves(t, outputs, ops, flips)
			})
		}
	}
}
