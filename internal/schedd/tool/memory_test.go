package tool

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	allocateVariable = "TOOL_TEST_ALLOCATE" // MiB
	patientVariable  = "TOOL_TEST_PATIENT"  // it tries again when it gets none
)

// TestAllocatingProcess is the tool of the tests below.
func TestAllocatingProcess(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(allocateVariable))
	if err != nil {
		return
	}
	for range n / step {
		err := allocate(step)
		for err != nil && os.Getenv(patientVariable) != "" {
			time.Sleep(pause / 10)
			err = allocate(step)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Println("has it")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

const step = 32 // MiB

func allocate(mib int) error {
	_, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return err
}

func allocating(mib int, more ...string) Command {
	return Command{
		Name: os.Args[0], Args: append([]string{"-test.run", "^TestAllocatingProcess$"}, more...), Dir: os.TempDir(),
		Env: []string{allocateVariable + "=" + strconv.Itoa(mib)}, Timeout: time.Minute, Memory: 512 << 20,
	}
}

func TestAToolThatWantsTooMuchMemoryEndsInWords(t *testing.T) {
	require.NoError(t, Run(t.Context(), allocating(64)))
	var f *Failure
	require.ErrorAs(t, Run(t.Context(), allocating(1024)), &f)
	require.Equal(t, Exited, f.Cause)
	require.Contains(
		t,
		f.Words,
		"it needed more memory than was left of the 512 MiB that the tools running at a time may have here, 5/8 of the container's but at least 640 MiB: ",
	)
	require.Contains(t, f.Words, "cannot allocate memory")
}

func TestWhatDiesWithoutMemoryIsKnownByItsWords(t *testing.T) {
	const needed = "it needed more memory than"
	for script, starved := range map[string]bool{
		`echo "terminate called after throwing an instance of 'std::bad_alloc'" >&2; kill -ABRT $$`: true,
		`echo "ERROR: Out of memory!" >&2; exit 44`:                                                 true,
		`kill -ABRT $$`:            false,
		`echo no such >&2; exit 1`: false,
	} {
		var f *Failure
		require.ErrorAs(t, Run(t.Context(), shell(script)), &f)
		if starved {
			require.Contains(t, f.Words, needed, script)
		} else {
			require.NotContains(t, f.Words, needed, script)
		}
	}
	require.NoError(t, Run(t.Context(), shell(`echo "Out of memory" >&2`)), "it has ended well")
}

func TestTheLimitHoldsForWhatAToolStarts(t *testing.T) {
	c := shell(`ulimit -d; sh -c 'ulimit -d'`)
	c.Memory = 300 << 20
	got := ""
	c.Read = func(r io.Reader) error { b, err := io.ReadAll(r); got = string(b); return err }
	c.Args[1] = `until [ "$(ulimit -d)" = 307200 ]; do sleep 0.01; done; ` + c.Args[1] // it is set just after the start
	require.NoError(t, Run(t.Context(), c))
	require.Equal(t, "307200\n307200\n", got)
}

func TestAToolHasAShareOfTheContainersMemory(t *testing.T) {
	for most, want := range map[uint64]uint64{0: 2 << 30, 512 << 20: 640 << 20, 1 << 30: 640 << 20,
		4 << 30: 2560 << 20} {
		require.Equal(t, want, memoryOf(most))
	}
	require.GreaterOrEqual(t, memory(), uint64(leastMemory))
}

func TestTheLowestLimitOfACgroupAndThoseAroundItCounts(t *testing.T) {
	root := t.TempDir()
	write := func(file, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text+"\n"), 0o600))
	}
	write("a/memory.max", "1073741824")
	write("a/b/memory.max", "max")
	write("c/memory.max", "max")
	write("memory/d/memory.limit_in_bytes", "536870912")
	write("memory/e/memory.limit_in_bytes", "9223372036854771712")
	for groups, want := range map[string]uint64{
		"0::/a/b\n": 1 << 30, "0::/c\n": 0, "0::/\n": 0, "": 0, "nonsense\n": 0, "0::/../..\n": 0,
		"3:cpu:/x\n5:memory:/d\n0::/\n": 1 << 29, "5:hugetlb,memory:/e\n": 0,
	} {
		require.Equal(t, want, memoryMax(root, groups), groups)
	}
	write("memory.max", "2147483648") // of a container, which sees its own as the first
	require.EqualValues(t, 2<<30, memoryMax(root, "0::/\n"))
}

func TestStartsAreCounted(t *testing.T) {
	before := Starts()
	require.NoError(t, Run(t.Context(), shell("true")))
	_ = Run(t.Context(), Command{Name: "no-such-tool", BinDir: "/bin", Timeout: time.Minute})
	require.Equal(t, before["sh"]+1, Starts()["sh"])
	require.NotContains(t, Starts(), "no-such-tool")
}
