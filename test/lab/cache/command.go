package cache

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// run runs a build command. It ends with all its children when ctx does or when this program is killed. Lines that
// begin with "step " become progress; the last others are told from time to time, and reported if it fails.
func (c *Cache) run(ctx context.Context, cmd *exec.Cmd, name string) error {
	return c.follow(ctx, cmd, name, &latest{})
}

// follow is run with another account of how far the command is.
func (c *Cache) follow(ctx context.Context, cmd *exec.Cmd, name string, sayer account) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = in, in
	err = start(cmd)
	in.Close()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })()

	progress := c.tell(name, sayer)
	defer progress.end()
	var last []string
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if step, ok := strings.CutPrefix(lines.Text(), "step "); ok {
			progress.step(step)
			continue
		}
		progress.line(lines.Text())
		last = append(last, lines.Text())
		if len(last) > 30 {
			last = last[1:]
		}
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w\n%s", cmd.Args[0], err, strings.Join(last, "\n"))
	}
	return nil
}

// namespaced makes cmd the init of a pid namespace with its own mounts: when it ends, all of that is gone.
func namespaced(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	return cmd
}

// start hands the fork to a thread that never ends, because Pdeathsig follows the thread and not the process.
func start(cmd *exec.Cmd) error {
	done := make(chan error)
	starts <- func() { done <- cmd.Start() }
	return <-done
}
