package tool

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tools that run at a time have one share of the container's memory together: the kernel would end the whole container
// if each of them had it. One that runs alone may have all of it. While there are several, it is divided again and
// again.

const (
	// least is what a tool may have in any case, so that one whose memory grows keeps no other from its work: condor_q
	// of a few jobs needs 3 MiB.
	least = 32 << 20
	// pause is how long a division holds.
	pause = 100 * time.Millisecond
)

// limited is a tool that runs.
type limited struct {
	pid  int
	most uint64 // for this one; 0: no limit of its own
	now  uint64 // what it may have
}

// division has the tools that run, in the order of their starts.
type division struct {
	most     func() uint64
	mu       sync.Mutex
	tools    []*limited
	dividing bool
}

var running = division{most: memory}

// limit bounds the memory of a tool that was just started until the function that it returns is called. A limit of this
// process's own would be inherited, but hold for this process, too, and Go sets none between fork and exec. It is not
// too late: the kernel compares all that the tool has with its limit whenever it wants more, and the tool has started
// none of its own processes yet.
func (d *division) limit(pid int, most uint64) (ended func()) {
	l := &limited{pid: pid, most: most, now: math.MaxUint64}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tools = append(d.tools, l)
	d.divide()
	if len(d.tools) > 1 && !d.dividing {
		d.dividing = true
		go d.keepDividing()
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tools = slices.DeleteFunc(d.tools, func(other *limited) bool { return other == l })
		d.divide()
	}
}

// keepDividing divides the memory as long as there are several tools.
func (d *division) keepDividing() {
	for range time.Tick(pause) {
		d.mu.Lock()
		if len(d.tools) < 2 {
			d.dividing = false
			d.mu.Unlock()
			return
		}
		d.divide()
		d.mu.Unlock()
	}
}

// divide sets the limits of all tools: what one may have no longer is free before it is given to another.
func (d *division) divide() {
	used := make([]uint64, len(d.tools))
	for i, l := range d.tools {
		used[i] = inUse(l.pid)
	}
	limits := divided(d.most(), used)
	for i, l := range d.tools {
		if limits[i] < l.now {
			l.set(limits[i])
		}
	}
	for i, l := range d.tools {
		if limits[i] > l.now {
			l.set(limits[i])
		}
	}
}

// divided returns what each of several tools may have, by what they have: that, and of what is left the first, which
// started first, half until the next time, the second half of the rest, and so on. The last one may have all that is
// left then.
func divided(most uint64, used []uint64) []uint64 {
	rest := most
	for _, n := range used {
		rest -= min(rest, n)
	}
	limits := make([]uint64, len(used))
	for i, n := range used {
		more := rest / 2
		if i == len(used)-1 {
			more = rest
		}
		limits[i] = max(n+more, least)
		rest -= more
	}
	return limits
}

// set sets the limit of a tool; one that is gone needs none, and where a sandbox forbids it there is none.
func (l *limited) set(most uint64) {
	l.now = most
	if l.most > 0 {
		most = min(most, l.most)
	}
	var was unix.Rlimit
	if unix.Prlimit(l.pid, unix.RLIMIT_DATA, nil, &was) != nil {
		return
	}
	_ = unix.Prlimit(l.pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: min(most, was.Max), Max: was.Max}, nil)
}

// inUse returns how much memory of its own a process has, in bytes.
func inUse(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)) // #nosec G304 -- of the kernel
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 6 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[5], 10, 64)
	return pages * uint64(os.Getpagesize()) // #nosec G115 -- a page
}
