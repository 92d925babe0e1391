// Package control lets commands ask the running htcd on a Unix socket, so that the ledger has one writer. The file's
// mode decides who may connect: htcd's own account, and root. HTTP provides deadlines and status codes.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/target/matching"
)

// MaxPath is the longest path of a socket, from unix(7): 108 bytes including the terminating one.
const MaxPath = 107

// Reconciler makes the pass that a client of the socket asks for.
type Reconciler interface {
	Reconcile(ctx context.Context, o job.ReconcileOptions) (job.Report, error)
}

// SlotLister lists the slots of the usual pool.
type SlotLister interface {
	Slots(ctx context.Context) (matching.Slots, error)
}

// Outcome is a report as it is sent and as -o json prints it. With an error it holds what was done all the same.
type Outcome struct {
	job.Report
	Error string `json:"error,omitempty"`
}

// Listen listens on the socket, which at no moment anybody but this account may connect to, and replaces one that
// a killed htcd has left. The Lease ensures that no other htcd works in this directory.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s exists and is no socket", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// A socket file is created with the mode that the socket has before it is bound (Linux).
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
		return errors.Join(err, failed)
	}}
	return private.Listen(context.Background(), "unix", path)
}

// NewServer returns what answers. It ends a pass under way when ctx ends, which leaves nothing half-done.
func NewServer(ctx context.Context, r Reconciler, slots SlotLister, synced func() bool) *http.Server {
	return &http.Server{
		Handler: handler(r, slots, synced), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// maxQuestion far exceeds the size of a scope.
const maxQuestion = 4 << 10

func handler(r Reconciler, slots SlotLister, synced func() bool) http.Handler {
	var one sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reconcile", func(w http.ResponseWriter, request *http.Request) {
		var o job.ReconcileOptions
		if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxQuestion)).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if !synced() {
			http.Error(w, "htcd has only just started; try again", http.StatusServiceUnavailable)
			return
		}
		one.Lock()
		defer one.Unlock()
		report, err := r.Reconcile(request.Context(), o)
		answer := Outcome{Report: report}
		if err != nil {
			answer.Error = err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client may have gone
	})
	mux.HandleFunc("GET /slots", func(w http.ResponseWriter, request *http.Request) {
		all, err := slots.Slots(request.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all.Kinds()) // the client may have gone
	})
	return mux
}

// ErrNoDaemon says that no htcd answers on the socket.
var ErrNoDaemon = errors.New("no htcd answers on the control socket")

// Reconcile asks the running htcd for a pass, and waits as long as it takes.
func Reconcile(ctx context.Context, socket string, o job.ReconcileOptions) (Outcome, error) {
	question, err := json.Marshal(o)
	if err != nil {
		return Outcome{}, err
	}
	var answer Outcome
	err = ask(ctx, socket, http.MethodPost, "/reconcile", bytes.NewReader(question), &answer)
	return answer, err
}

// Slots asks the running htcd for the slots of the usual pool, by kind.
func Slots(ctx context.Context, socket string) ([]matching.Kind, error) {
	kinds := []matching.Kind{}
	err := ask(ctx, socket, http.MethodGet, "/slots", nil, &kinds)
	return kinds, err
}

// ask asks the running htcd, and reads its answer.
func ask(ctx context.Context, socket, method, path string, question io.Reader, answer any) error {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://htcd"+path, question)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNoDaemon
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s belongs to another account: run this as the account of htcd run", socket)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the running htcd ended before it had answered")
	}
	if err != nil {
		return fmt.Errorf("ask the running htcd: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		words, _ := io.ReadAll(io.LimitReader(response.Body, maxQuestion))
		return fmt.Errorf("the running htcd says: %s", bytes.TrimSpace(words))
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("the running htcd ended before it had answered: %w", err)
	}
	return nil
}
