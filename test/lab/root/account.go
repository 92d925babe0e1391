package root

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Account returns the ids of an account in the root of the lab whose first process is pid.
func Account(pid int, name string) (uid, gid uint32, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/etc/passwd", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, ":")
		if len(f) < 4 || f[0] != name {
			continue
		}
		u, err := strconv.ParseUint(f[2], 10, 32)
		if err != nil {
			return 0, 0, err
		}
		g, err := strconv.ParseUint(f[3], 10, 32)
		return uint32(u), uint32(g), err
	}
	return 0, 0, fmt.Errorf("no account %q in the lab", name)
}
