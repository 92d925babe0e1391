// Package tool runs one command line tool of another project: to its end or to a
// deadline, with nothing of this process's environment, in a process group that is
// killed as a whole, and never longer than this process lives.
package tool

import (
	"bytes"
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

// lateOutput is how long a killed tool's pipes are waited for.
const lateOutput = 2 * time.Second

// Command is one call of a tool.
type Command struct {
	Name   string // condor_submit
	BinDir string // where it is, unless its name is a path; empty: found in PATH
	Args   []string
	Env    []string // beyond PATH, HOME and the C locale
	Dir    string   // working directory; empty: /
	Stdin  string
	// Timeout is the deadline, counted from the start.
	Timeout time.Duration
	// Writes are the files, and directories with all below them, that the tool may write, remove or make, where the
	// kernel can see to that (see Confined); none: all that this process may.
	Writes []string
	// Read gets the standard output; nil: nobody does. An error of it ends the tool.
	Read func(io.Reader) error
}

// Cause says how a call failed.
type Cause int

// The causes.
const (
	NotStarted   Cause = iota // it is not there or may not run
	Exited                    // it ended by itself, and not with 0
	TimedOut                  // it was killed at its deadline
	Interrupted               // it was killed because the caller's context ended
	ReaderFailed              // Command.Read returned an error, Failure.Err
)

// Failure is the error of Run.
type Failure struct {
	Cause    Cause
	ExitCode int      // -1 when it did not exit by itself
	Words    string   // the last lines of its stderr, or ours, on one line
	Lines    []string // the last lines of its stderr
	Err      error
}

func (f *Failure) Error() string { return f.Words }

// Unwrap returns what stands behind the failure.
func (f *Failure) Unwrap() error { return f.Err }

// Run runs the tool. Its error is a *Failure.
//
// The tool dies with this process: Linux sends its death signal when the thread that
// started it ends, so this goroutine keeps its thread until the tool is gone. Where this
// process is killed, the signal is sent before its parent can hear of that.
func Run(parent context.Context, c Command) error {
	if len(c.Writes) == 0 {
		return run(parent, c)
	}
	// What is taken from a thread it never gets back: this one ends with its goroutine, which has locked it once more
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
	x := exec.CommandContext(ctx, path, c.Args...) // #nosec G204 -- starting tools is what this package is for; no shell reads the arguments
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
	var stderr tail
	x.Stderr = &stderr
	stdout, err := x.StdoutPipe()
	if err == nil {
		err = x.Start()
	}
	switch {
	case err != nil && parent.Err() != nil:
		return &Failure{Cause: Interrupted, ExitCode: -1, Words: "interrupted: " + parent.Err().Error(), Err: parent.Err()}
	case err != nil:
		return &Failure{Cause: NotStarted, ExitCode: -1, Words: "cannot be started: " + err.Error(), Err: err}
	}
	// A grandchild that left the group and kept the pipe must not outlast the deadline.
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
		cancel() // nobody listens any more
	} else {
		// What follows the answer is of no interest, but must not block its writer.
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
		f.Cause, f.Err, f.Words = TimedOut, context.DeadlineExceeded, fmt.Sprintf("no answer within %s; it was killed", c.Timeout)
	case readErr != nil:
		f.Cause, f.Err = ReaderFailed, readErr
	default:
		f.Cause, f.Err = Exited, waitErr
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

// Output makes a Command.Read that keeps a short answer; a long one is an error.
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
