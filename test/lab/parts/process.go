package parts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/root"
)

// Process is a part that consists of one program, perhaps with children.
type Process struct {
	Name, Log string
	Port      int
	Args      []string
	Env       []string
	// Account runs it; empty: root.
	Account string
	// Ready returns nil when the part answers.
	Ready func(ctx context.Context) error
	// Orderly is the signal of Stop; nil: SIGTERM. After Grace follows SIGKILL.
	Orderly os.Signal
	Grace   time.Duration
	// Spare parts run only on request.
	Spare bool

	mu      sync.Mutex
	extra   []string
	cmd     *exec.Cmd
	done    chan struct{}
	err     error
	stopped bool
	frozen  bool
}

// readyWithin limits the start of any part on a busy machine: what ends while it starts is told at once.
const readyWithin = 10 * time.Minute

func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Start implements Part.
func (p *Process) Start(ctx context.Context) error {
	if err := p.spawn(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := p.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended while starting (%v); the end of its log:\n%s", p.Name, p.err, tail(p.Log))
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; the end of its log:\n%s", p.Name, err, tail(p.Log))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *Process) spawn() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		p.frozen = false
		return p.signal(syscall.SIGCONT)
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.Args[0], slices.Concat(p.Args[1:], p.extra)...)
	cmd.Env = append([]string{"PATH=" + root.Path, "LANG=C.UTF-8", "HOME=/nonexistent"}, p.Env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.Account != "" {
		if cmd.SysProcAttr.Credential, err = credential(p.Account); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	p.cmd, p.done, p.stopped, p.frozen = cmd, done, false, false
	go func() {
		p.err = cmd.Wait()
		close(done)
	}()
	return nil
}

// Stop implements Part.
func (p *Process) Stop(ctx context.Context) error {
	orderly := p.Orderly
	if orderly == nil {
		orderly = syscall.SIGTERM
	}
	grace := p.Grace
	if grace == 0 {
		grace = 10 * time.Second
	}
	return p.end(ctx, orderly, grace)
}

// Kill implements Part.
func (p *Process) Kill(ctx context.Context) error { return p.end(ctx, syscall.SIGKILL, 0) }

func (p *Process) end(ctx context.Context, s os.Signal, grace time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if !p.running() {
		return nil
	}
	if grace > 0 {
		if err := p.signal(syscall.SIGCONT); err != nil {
			return err
		}
		if err := p.cmd.Process.Signal(s); err != nil {
			return err
		}
		select {
		case <-p.done:
			// Its pid may be another process's by now.
			p.frozen = false
			return nil
		case <-ctx.Done():
		case <-time.After(grace):
		}
	}
	if err := killTree(p.cmd.Process.Pid); err != nil {
		return err
	}
	<-p.done
	p.frozen = false
	return nil
}

// SetExtra sets additional arguments for the next and later starts, replacing those set before.
func (p *Process) SetExtra(args []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extra = args
}

// Freeze implements Part.
func (p *Process) Freeze() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("%s is not running", p.Name)
	}
	p.frozen = true
	return p.signal(syscall.SIGSTOP)
}

// Thaw implements Part.
func (p *Process) Thaw() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("%s is not running", p.Name)
	}
	p.frozen = false
	return p.signal(syscall.SIGCONT)
}

// signal also signals the children.
func (p *Process) signal(s syscall.Signal) error {
	for _, pid := range tree(p.cmd.Process.Pid) {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	return nil
}

// Status implements Part.
func (p *Process) Status() lab.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := lab.Status{Part: p.Name, Port: p.Port, Log: p.Log, State: "exited", Spare: p.Spare}
	switch {
	case p.running():
		s.State, s.Pid = "running", p.cmd.Process.Pid
		if p.frozen {
			s.State = "frozen"
		}
	case p.stopped || p.cmd == nil:
		s.State = "stopped"
	}
	return s
}

// Account returns the ids of an account of the root.
func Account(name string) (uid, gid uint32, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	group, err := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group), err
}

func credential(account string) (*syscall.Credential, error) {
	uid, gid, err := Account(account)
	return &syscall.Credential{Uid: uid, Gid: gid}, err
}

// directory makes a directory that belongs to an account.
func directory(account string, mode os.FileMode, path ...string) (string, error) {
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	uid, gid, err := Account(account)
	if err != nil {
		return "", err
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, mode)
}

// command runs a short program and returns its output; if it fails, the error contains all of it.
func command(ctx context.Context, env []string, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append([]string{"PATH=" + root.Path, "LANG=C.UTF-8", "HOME=/nonexistent"}, env...)
	cmd.Stdin = bytes.NewReader([]byte(input))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// tail returns the last lines of a log.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-15):], []byte("\n")))
}
