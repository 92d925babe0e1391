// Command cost runs go test -json, one test after the other, and prints what each took, as it ends and in a table:
// seconds, seconds of CPU, and how many processes ended meanwhile, with the programs that were started most often.
//
//	cost go test -json -p 1 -parallel 1 ./e2e
//
// It gives the command a pid namespace with the kernel's process accounting (acct(2)), which also counts what its
// descendants start in namespaces of their own: a lab's parts, HTCondor's jobs and what these run. Root only.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name the command to run, such as: go test -json ./e2e")
	case args[0] == inside && len(args) > 2:
		return measure(args[1], args[2:])
	}
	dir, err := os.MkdirTemp("", "cost")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{inside, filepath.Join(dir, "accounts")}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	return cmd.Run()
}

// inside is the first argument of the program that is the init of the namespace.
const inside = "-inside"

// measure runs the command with accounts in a file, and prints the table.
func measure(accounts string, command []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	file, err := os.OpenFile(accounts, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Acct(accounts); err != nil {
		return fmt.Errorf("process accounting: %w", err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t := newTable(&meter{file: file}, os.Stderr)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // the lab's
			continue
		}
		if err := t.take(e); err != nil {
			return err
		}
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	t.print(os.Stdout)
	return err
}
