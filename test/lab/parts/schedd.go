package parts

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// Schedd is a part within condor: the master starts it through schedd-gate.sh, which waits while the file "down"
// exists.
type Schedd struct {
	condor *Process
	down   string
	log    string
}

// NewSchedd returns the schedd of condor.
func NewSchedd(w World, condor *Process) *Schedd {
	return &Schedd{
		condor: condor,
		down:   w.Lab.Path("condor", "schedd-down"),
		log:    w.Lab.Path("condor", "log", "SchedLog"),
	}
}

// pid returns the schedd's own pid, 0 while there is none.
func (s *Schedd) pid() int {
	master := s.condor.Status().Pid
	if master == 0 {
		return 0
	}
	for _, pid := range tree(master) {
		if strings.HasSuffix(executable(pid), "/condor_schedd") {
			return pid
		}
	}
	return 0
}

// Start implements Part. Without condor it only removes the obstacle: the schedd then starts with its master.
func (s *Schedd) Start(ctx context.Context) error {
	if err := os.Remove(s.down); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if s.condor.Status().Pid == 0 {
		return nil
	}
	// The process found may be about to exit; the master then starts another.
	if pid := s.pid(); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := poolReady(ctx, s.condor.Env)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop implements Part. SIGQUIT is HTCondor's fast shutdown, which leaves running jobs to be found again at the next
// start; SIGTERM would evict them all first.
func (s *Schedd) Stop(ctx context.Context) error { return s.end(ctx, syscall.SIGQUIT) }

// Kill implements Part.
func (s *Schedd) Kill(ctx context.Context) error { return s.end(ctx, syscall.SIGKILL) }

func (s *Schedd) end(ctx context.Context, signal syscall.Signal) error {
	if err := os.WriteFile(s.down, nil, 0o644); err != nil {
		return err
	}
	pid := s.pid()
	if pid == 0 {
		return nil
	}
	grace := time.After(20 * time.Second)
	if signal != syscall.SIGKILL {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	_ = syscall.Kill(pid, signal)
	for s.pid() == pid {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grace:
			_ = syscall.Kill(pid, syscall.SIGKILL)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Freeze implements Part. On a busy machine the schedd is stopped some time after the signal.
func (s *Schedd) Freeze() error {
	if err := s.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for pid := s.pid(); pid != 0 && !stoppedBySignal(pid); pid = s.pid() {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Thaw implements Part.
func (s *Schedd) Thaw() error { return s.signal(syscall.SIGCONT) }

func (s *Schedd) signal(signal syscall.Signal) error {
	pid := s.pid()
	if pid == 0 {
		return errors.New("schedd is not running")
	}
	return syscall.Kill(pid, signal)
}

// Status implements Part.
func (s *Schedd) Status() lab.Status {
	st := lab.Status{Part: "schedd", State: "exited", Pid: s.pid(), Port: s.condor.Port, Log: s.log}
	_, err := os.Stat(s.down)
	switch {
	case st.Pid != 0 && stoppedBySignal(st.Pid):
		st.State = "frozen"
	case st.Pid != 0:
		st.State = "running"
	case err == nil || s.condor.Status().Pid == 0:
		st.State = "stopped"
	}
	return st
}

// stoppedBySignal reports whether a process is in state T of proc_pid_stat(5).
func stoppedBySignal(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	return strings.HasPrefix(strings.TrimSpace(rest), "T")
}
