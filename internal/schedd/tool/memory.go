package tool

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// How much memory of their own (RLIMIT_DATA) the tools that run at a time may have: a share of what the container may
// have, and at least what an answer about 100,000 jobs takes, which is 432 MiB (condor_q -json, 30 attributes of each).
const (
	shareNumerator, shareDenominator = 5, 8

	leastMemory  = 640 << 20
	memoryOfNone = 2 << 30 // if the container's is unbounded
)

// memory returns how much memory the tools may have, in bytes.
var memory = sync.OnceValue(func() uint64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return memoryOf(0)
	}
	return memoryOf(memoryMax("/sys/fs/cgroup", string(groups)))
})

// memoryOf returns the tools' share of max bytes; 0: unbounded.
func memoryOf(most uint64) uint64 {
	if most == 0 {
		return memoryOfNone
	}
	return max(leastMemory, most/shareDenominator*shareNumerator)
}

// memoryMax returns the lowest limit of the cgroups that /proc/self/cgroup names and of those that they are in, 0
// without any.
func memoryMax(root, groups string) (most uint64) {
	for line := range strings.Lines(groups) { // 0::/system.slice/x, or 4:memory:/x of version 1
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		in, file := root, "memory.max"
		switch {
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			in, file = path.Join(root, "memory"), "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			text, err := os.ReadFile(path.Join(in, group, file)) // #nosec G304 -- of the kernel
			if n, notNumber := strconv.ParseUint(
				string(bytes.TrimSpace(text)),
				10,
				64,
			); err == nil &&
				notNumber == nil &&
				n < 1<<60 &&
				(most == 0 || n < most) {
				most = n
			}
			if group == "/" {
				break
			}
		}
	}
	return most
}

// noMemory matches how programs say that they got none.
var noMemory = regexp.MustCompile(`(?i)bad_alloc|out of memory|cannot allocate memory|memory exhausted`)

// starved says that a tool ended for lack of memory, "" if there is no sign of that: its own words, or a crash with
// half of the memory in use.
func starved(said []string, ended *os.ProcessState, most uint64) string {
	status, _ := ended.Sys().(syscall.WaitStatus)
	usage, _ := ended.SysUsage().(*syscall.Rusage)
	crashed := status.Signaled() &&
		(status.Signal() == syscall.SIGABRT || status.Signal() == syscall.SIGSEGV ||
			status.Signal() == syscall.SIGBUS) &&
		usage != nil &&
		uint64(usage.Maxrss)<<10 > most/2 // #nosec G115 -- KiB, not below 0
	if !crashed && !slices.ContainsFunc(said, noMemory.MatchString) {
		return ""
	}
	return fmt.Sprintf(
		"it needed more memory than was left of the %d MiB that the tools running at a time may have here, 5/8 of the container's but at least %d MiB",
		most>>20,
		leastMemory>>20,
	)
}
