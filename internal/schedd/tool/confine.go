package tool

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a confined thread and its tool may not do outside Command.Writes, by the version of Landlock that introduced
// each right. Reading is not among them.
const (
	writesOf1 = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	writesOf2 = unix.LANDLOCK_ACCESS_FS_REFER
	writesOf3 = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	ofFiles   = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlock returns the kernel's version of Landlock; 0 if it is missing, disabled, or forbidden in this container.
var landlock = sync.OnceValue(func() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version) // #nosec G115 -- a small number
})

// Confined reports whether the kernel can restrict a tool to Command.Writes.
func Confined() bool { return landlock() > 0 }

// confine permanently restricts this thread, and what it starts, to writing the given paths. Without Landlock it does
// nothing.
func confine(writes []string) error {
	if !Confined() {
		return nil
	}
	handled := uint64(writesOf1)
	if landlock() >= 2 {
		handled |= writesOf2
	}
	if landlock() >= 3 {
		handled |= writesOf3
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	fd, _, errno := unix.Syscall(
		unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&rules)), // #nosec G103 -- as the system call wants it
		unsafe.Sizeof(rules.Handled_access_fs),
		0,
	)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	ruleset := os.NewFile(fd, "ruleset")
	defer ruleset.Close()
	for _, path := range writes {
		if err := allow(int(fd), handled, path); err != nil { // #nosec G115 -- a file descriptor
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

// allow adds a path to the rules; a missing one needs none.
func allow(ruleset int, handled uint64, path string) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = unix.Close(at) }() // nothing depends on it
	var stat unix.Stat_t
	if err := unix.Fstat(at, &stat); err != nil {
		return fmt.Errorf("stat %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		handled &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{
		Allowed_access: handled,
		Parent_fd:      int32(at), // #nosec G115 -- a file descriptor
	}
	_, _, errno := unix.Syscall6(
		unix.SYS_LANDLOCK_ADD_RULE,
		uintptr(ruleset),
		unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), // #nosec G103 -- as the system call wants it
		0,
		0,
		0,
	)
	if errno != 0 {
		return fmt.Errorf("landlock_add_rule %s: %w", path, errno)
	}
	return nil
}
