// Package tool runs a command line tool of another project until it ends or its
// deadline passes. The tool gets nothing of this process's environment, is killed
// with its whole process group, and never outlives this process.
package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// lateOutput is how long to wait for the pipes of a killed tool.
const lateOutput = 2 * time.Second

// Command is one call of a tool.
type Command struct {
	Name   string // condor_submit
	BinDir string // its directory, unless its name is a path; empty: PATH is searched
	Args   []string
	Env    []string // in addition to PATH, HOME and the C locale
	Dir    string   // working directory; empty: /
	Stdin  string
	In     io.Reader // its standard input instead of Stdin; it is to end when Read has returned
	// Timeout is the deadline, counted from the start.
	Timeout time.Duration
	// Memory is how many bytes of memory of its own the tool may have at most; 0: what is left of that for all tools.
	Memory uint64
	// Writes lists the files and directories (with everything below them) that the tool may write, remove or create, if
	// the kernel can enforce that (see Confined); empty: whatever this process may.
	Writes []string
	// Read is given the standard output; nil discards it. If it returns an error, the tool is killed.
	Read func(io.Reader) error
}

// Cause is how a call failed.
type Cause int

// The causes.
const (
	NotStarted   Cause = iota // the tool is missing or may not be executed
	Exited                    // it exited with a code other than 0
	TimedOut                  // it was killed at its deadline
	Interrupted               // it was killed because the caller's context ended
	ReaderFailed              // Command.Read returned an error, Failure.Err
)

// Failure is the error of Run.
type Failure struct {
	Cause    Cause
	ExitCode int      // -1 if it was killed
	Words    string   // the last lines of its stderr on one line, or our own explanation
	Lines    []string // the last lines of its stderr
	Err      error
}

func (f *Failure) Error() string { return f.Words }

// Unwrap returns the underlying error.
func (f *Failure) Unwrap() error { return f.Err }

// Run runs the tool. Its error is a *Failure.
//
// The tool dies with this process: Linux sends the parent-death signal when the thread
// that started the tool ends, so this goroutine keeps its thread until the tool is gone. If
// this process is killed, the signal is sent before its parent can learn of that.
func Run(parent context.Context, c Command) error {
	if len(c.Writes) == 0 {
		return run(parent, c)
	}
	// A confined thread never regains its rights. This one ends with its goroutine, which has locked it once more
	// than it unlocks it.
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := confine(c.Writes); err != nil {
			ended <- &Failure{Cause: NotStarted, ExitCode: -1, Words: "cannot be confined: " + err.Error(), Err: err}
			return
		}
		ended <- run(parent, c)
	}()
	return <-ended
}

func run(parent context.Context, c Command) error {
	ctx, cancel := context.WithTimeout(parent, c.Timeout)
	defer cancel()
	path := filepath.Join(c.BinDir, c.Name)
	switch {
	case filepath.IsAbs(c.Name):
		path = c.Name
	case c.BinDir == "":
		var err error
		if path, err = exec.LookPath(c.Name); err != nil {
			return &Failure{Cause: NotStarted, ExitCode: -1, Words: "not found in PATH", Err: err}
		}
	}

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	x := exec.CommandContext(
		ctx,
		path,
		c.Args...) // #nosec G204 -- starting tools is what this package is for; no shell reads the arguments
	x.Dir = c.Dir
	if x.Dir == "" {
		x.Dir = "/"
	}
	x.Env = c.environment()
	x.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	x.Cancel = func() error { return syscall.Kill(-x.Process.Pid, syscall.SIGKILL) }
	x.WaitDelay = lateOutput
	if c.Stdin != "" {
		x.Stdin = strings.NewReader(c.Stdin)
	}
	if c.In != nil {
		x.Stdin = c.In
	}
	var stderr tail
	x.Stderr = &stderr
	stdout, err := x.StdoutPipe()
	if err == nil {
		err = x.Start()
	}
	if err == nil {
		defer running.limit(x.Process.Pid, c.Memory)()
		starts.count(path)
	}
	switch {
	case err != nil && parent.Err() != nil:
		return &Failure{
			Cause:    Interrupted,
			ExitCode: -1,
			Words:    "interrupted: " + parent.Err().Error(),
			Err:      parent.Err(),
		}
	case err != nil:
		return &Failure{Cause: NotStarted, ExitCode: -1, Words: "cannot be started: " + err.Error(), Err: err}
	}
	// A grandchild that left the group and kept the pipe must not extend the deadline.
	if d, ok := stdout.(interface{ SetReadDeadline(time.Time) error }); ok {
		stop := context.AfterFunc(ctx, func() { _ = d.SetReadDeadline(time.Now().Add(lateOutput)) })
		defer stop()
	}
	var readErr error
	if c.Read != nil {
		readErr = c.Read(stdout)
	}
	timedOut := errors.Is(ctx.Err(), context.DeadlineExceeded)
	if readErr != nil {
		cancel() // nobody reads any more
	} else {
		// Anything after the answer is discarded, so that its writer is not blocked.
		_, _ = io.Copy(io.Discard, stdout)
	}
	waitErr := x.Wait()
	timedOut = timedOut || errors.Is(ctx.Err(), context.DeadlineExceeded)

	f := &Failure{ExitCode: x.ProcessState.ExitCode(), Words: stderr.words(), Lines: stderr.lines()}
	switch {
	case readErr == nil && waitErr == nil:
		return nil
	case parent.Err() != nil:
		f.Cause, f.Err, f.Words = Interrupted, parent.Err(), "interrupted: "+parent.Err().Error()
	case timedOut:
		f.Cause, f.Err, f.Words = TimedOut, context.DeadlineExceeded, fmt.Sprintf(
			"no answer within %s; it was killed",
			c.Timeout,
		)
	case readErr != nil:
		f.Cause, f.Err = ReaderFailed, readErr
	default:
		f.Cause, f.Err = Exited, waitErr
	}
	if f.Cause == Exited || f.Cause == ReaderFailed {
		if why := starved(f.Lines, x.ProcessState, cmp.Or(c.Memory, memory())); why != "" {
			f.Words = strings.TrimSuffix(why+": "+f.Words, ": ")
		}
	}
	return f
}

func (c Command) environment() []string {
	path := searchPath
	if c.BinDir != "" {
		path = c.BinDir + ":" + path
	}
	return append([]string{"PATH=" + path, "HOME=/nonexistent", "LANG=C", "LC_ALL=C", "TZ=UTC"}, c.Env...)
}

// Output returns a Command.Read that keeps a short answer; a long one is an error.
func Output(b *bytes.Buffer) func(io.Reader) error {
	return func(r io.Reader) error {
		const most = 1 << 20
		n, err := io.Copy(b, io.LimitReader(r, most+1))
		if err == nil && n > most {
			err = fmt.Errorf("an answer of more than %d bytes", most)
		}
		return err
	}
}
