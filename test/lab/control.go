package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Request is one line sent to the supervisor. Op is one of the Op constants.
type Request struct {
	Op   string   `json:"op"`
	Part string   `json:"part,omitempty"`
	Args []string `json:"args,omitempty"`
}

// Requests to a supervisor.
const (
	OpStatus  = "status"
	OpStop    = "stop"
	OpStart   = "start"
	OpKill    = "kill"
	OpFreeze  = "freeze"
	OpThaw    = "thaw"
	OpRestart = "restart"
	OpDown    = "down"
)

// Event is one line of the supervisor's answer; the last one has Done set.
type Event struct {
	Progress string   `json:"progress,omitempty"`
	Parts    []Status `json:"parts,omitempty"`
	Error    string   `json:"error,omitempty"`
	Done     bool     `json:"done,omitempty"`
}

// Status of one part.
type Status struct {
	Part string `json:"part"`
	// State is running, frozen, stopped (asked for) or exited (not asked for).
	State string `json:"state"`
	// Pid is the pid inside the lab's namespace, 0 if there is none.
	Pid  int    `json:"pid"`
	Port int    `json:"port"`
	Log  string `json:"log"`
	// Spare says that the lab comes up without it.
	Spare bool `json:"spare,omitempty"`
}

// Part is one of the parts a test can disturb.
type Part struct {
	lab  *Lab
	name string
}

// Part names a part: etcd, apiserver, controller-manager, kdc, condor, schedd, schedd2, feed, pool2, registry,
// receiver-net, prometheus, store, xrootd or htcd.
func (l *Lab) Part(name string) Part { return Part{l, name} }

// Stop ends the part gracefully and returns when it is gone. It stays down until Start.
func (p Part) Stop(ctx context.Context) error { return p.ask(ctx, OpStop) }

// Kill ends the part with SIGKILL and returns when it is gone. It stays down until Start.
func (p Part) Kill(ctx context.Context) error { return p.ask(ctx, OpKill) }

// Start returns when the part answers; it is not an error if it is already running.
func (p Part) Start(ctx context.Context) error { return p.ask(ctx, OpStart) }

// Freeze stops the part with SIGSTOP: it keeps its ports and answers nothing.
func (p Part) Freeze(ctx context.Context) error { return p.ask(ctx, OpFreeze) }

// Thaw ends Freeze.
func (p Part) Thaw(ctx context.Context) error { return p.ask(ctx, OpThaw) }

// Restart stops the part and starts it again. For htcd, args are flags added to its own until the next Restart.
func (p Part) Restart(ctx context.Context, args ...string) error {
	_, err := p.lab.Ask(ctx, Request{Op: OpRestart, Part: p.name, Args: args}, nil)
	return err
}

func (p Part) ask(ctx context.Context, op string) error {
	_, err := p.lab.Ask(ctx, Request{Op: op, Part: p.name}, nil)
	return err
}

// Ask sends one request to the lab's supervisor and passes its progress to progress, which may be nil. It returns the
// last event.
func (l *Lab) Ask(ctx context.Context, r Request, progress func(string)) (Event, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		return Event{}, fmt.Errorf("lab %s: %w: %w", l.Dir, ErrNotRunning, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return Event{}, err
	}
	event, err := ReadEvents(conn, progress)
	if ctx.Err() != nil {
		return event, ctx.Err()
	}
	return event, err
}

// ReadEvents reads events up to the last one, whose error it returns.
func ReadEvents(conn net.Conn, progress func(string)) (Event, error) {
	dec := json.NewDecoder(conn)
	for {
		var e Event
		if err := dec.Decode(&e); err != nil {
			return e, fmt.Errorf("the lab's supervisor has gone: %w", err)
		}
		if e.Progress != "" && progress != nil {
			progress(e.Progress)
		}
		if e.Done && e.Error != "" {
			return e, errors.New(e.Error)
		}
		if e.Done {
			return e, nil
		}
	}
}

// ControlSocket is where the supervisor listens.
func (l *Lab) ControlSocket() string { return l.Path("run", "control.sock") }

// dial goes through the directory's descriptor, because a socket's path is limited to 107 bytes (unix(7)) and a lab's
// may be longer.
func (l *Lab) dial(ctx context.Context) (net.Conn, error) {
	path, dir, err := ShortSocketPath(l.ControlSocket())
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// ShortSocketPath returns another path of the same socket, valid while dir is open.
func ShortSocketPath(socket string) (path string, dir *os.File, err error) {
	dir, err = os.Open(filepath.Dir(socket))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)), dir, nil
}
