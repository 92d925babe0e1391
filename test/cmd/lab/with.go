package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// with runs a command while the lab is up. The lab is taken down whatever becomes of the command, interrupts included,
// unless LAB_KEEP is set and it ran before, or the command failed.
func with(ctx context.Context, l *lab.Lab, args []string) (err error) {
	var upArgs []string
	if len(args) > 1 && args[0] == "--clone" {
		upArgs, args = args[:2], args[2:]
	}
	if len(args) == 0 {
		return errors.New("lab with: which command?")
	}
	_, before := l.Identity()
	if err := up(ctx, l, upArgs); err != nil {
		return err
	}
	defer func() {
		if os.Getenv("LAB_KEEP") == "" || before != nil && err == nil {
			err = errors.Join(err, down(context.WithoutCancel(ctx), l))
		}
	}()

	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HTCD_LAB="+l.Dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// An interrupt reaches the command from the terminal too; it may clean up before it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w (logs in %s)", args[0], err, l.Path("log"))
	}
	return nil
}
