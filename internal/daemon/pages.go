package daemon

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// giveBackPages tells the kernel that the pages of this program's file are not needed now. Most were used by the start
// alone, or in a busier hour, and would stay in memory. Those that are used are mapped again from the file's cache,
// some hundred times for all of them, within microseconds each. Where that is not possible, they stay.
func giveBackPages() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range unwritten(smaps, program) {
		for _, advice := range []uintptr{unix.MADV_COLD, unix.MADV_DONTNEED} {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, advice)
		}
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unwritten returns the mappings of a file in /proc/PID/smaps that cannot be written and, as "Anonymous" shows, never
// were: their pages are those of the file.
func unwritten(smaps io.Reader, file string) (all []mapping) {
	var of *mapping
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		var m mapping
		var can, offset, device, inode string
		n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %s %s %s", &m.from, &m.to, &can, &offset, &device, &inode)
		switch {
		case n == 6 && strings.HasPrefix(can, "r-") && strings.HasSuffix(lines.Text(), " "+file):
			of = &m
		case n == 6:
			of = nil
		case of != nil && strings.Join(strings.Fields(lines.Text()), " ") == "Anonymous: 0 kB":
			all = append(all, *of)
		}
	}
	return all
}
