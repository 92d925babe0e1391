package root

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Person is the user that a program runs as.
type Person struct {
	UID, GID uint32
	// AnyFile lets the person read and write whatever root may.
	AnyFile bool
}

// Enter runs a program inside the root of the lab whose first process is pid, as somebody of that root, in the
// caller's directory if that is there too (else in fallback), with the caller's standard files. It returns the
// program's exit code.
func Enter(pid int, who Person, env []string, fallback, program string, args ...string) (int, error) {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = fallback
	}
	// A thread that has joined namespaces has no other use: it stays locked and ends with the program.
	runtime.LockOSThread()
	if err := join(pid); err != nil {
		return 0, fmt.Errorf("enter the lab: %w", err)
	}
	if os.Chdir(cwd) != nil {
		if err := os.Chdir(fallback); err != nil {
			return 0, err
		}
	}
	// setpriv makes the program end with this one. SysProcAttr.Pdeathsig cannot do so across pid namespaces: the child
	// sees parent 0 and assumes that its parent is gone.
	cmd := exec.Command("/usr/bin/setpriv", append([]string{"--pdeathsig", "KILL", "--", program}, args...)...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.UID, Gid: who.GID}}
	if who.AnyFile {
		cmd.SysProcAttr.AmbientCaps = []uintptr{
			unix.CAP_CHOWN,
			unix.CAP_FOWNER,
			unix.CAP_DAC_OVERRIDE,
			unix.CAP_DAC_READ_SEARCH,
		}
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			// The terminal sends SIGINT and SIGQUIT to the program as well.
			if s == syscall.SIGTERM || s == syscall.SIGHUP {
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// join puts this thread into pid's network and mount namespaces, and its future children into the pid namespace.
func join(pid int) error {
	var fds [2]int
	for i, kind := range []string{"pid", "mnt"} {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	if err := JoinNetwork(pid); err != nil {
		return err
	}
	// A thread that shares its root and current directory with others may not change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Setns(fds[0], unix.CLONE_NEWPID); err != nil {
		return err
	}
	return unix.Setns(fds[1], unix.CLONE_NEWNS)
}
