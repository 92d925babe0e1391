package parts

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// tree returns pid and its descendants, parents first.
func tree(pid int) []int {
	children := map[int][]int{}
	for _, p := range pids() {
		if parent, ok := parentOf(p); ok {
			children[parent] = append(children[parent], p)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// killTree ends pid and its descendants. All are stopped first, so that none can start another one unseen or restart
// what is being killed.
func killTree(pid int) error {
	var stopped []int
	for {
		var fresh []int
		for _, p := range tree(pid) {
			if !slices.Contains(stopped, p) {
				fresh = append(fresh, p)
			}
		}
		if len(fresh) == 0 {
			break
		}
		for _, p := range fresh {
			_ = syscall.Kill(p, syscall.SIGSTOP)
		}
		stopped = append(stopped, fresh...)
	}
	var errs []error
	for _, p := range stopped {
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			errs = append(errs, fmt.Errorf("kill %d: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

func pids() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

func parentOf(pid int) (int, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

// executable returns the program that pid runs.
func executable(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return path
}
