package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/root"
)

func down(ctx context.Context, l *lab.Lab) error {
	unlock, err := lockLab(l)
	if err != nil {
		return err
	}
	defer unlock()
	p := newProgress()
	if err := end(ctx, l, p); err != nil {
		return err
	}
	p.printf("the lab is down")
	return nil
}

// end lets the parts end in order, then removes whatever is left.
func end(ctx context.Context, l *lab.Lab, p *progress) error {
	id, err := l.Identity()
	if errors.Is(err, lab.ErrNotRunning) {
		return root.RemoveCgroup(l.Cgroup())
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := l.Ask(ctx, lab.Request{Op: lab.OpDown}, func(line string) { p.printf("%s", line) }); err != nil {
		p.printf("%v: killing the lab", err)
	}
	return errors.Join(kill(l, id), root.RemoveCgroup(l.Cgroup()))
}

// kill ends the first process of the lab, and with it all others. It returns when they are gone.
func kill(l *lab.Lab, id lab.Identity) error {
	// From here on the pid means this very process, or none.
	fd, err := unix.PidfdOpen(id.Init, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", id.Init, err)
	}
	defer unix.Close(fd)
	if started, err := lab.StartTime(id.Init); err != nil || started != id.Started {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill lab %s: %w", l.Dir, err)
	}
	// The first process of a namespace is gone only when all the others are.
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
