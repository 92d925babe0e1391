package main

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

	"htc.cern.ch/htcd/internal/kube"
)

// The running htcd answers htcd reconcile on a Unix socket, so that there is one writer of the ledger. Who may connect is
// a matter of the file's mode: htcd's own account, and root. HTTP is there for its deadlines and status codes.

// reconciler is what the socket leads to.
type reconciler interface {
	Reconcile(ctx context.Context, o kube.ReconcileOptions) (kube.Report, error)
}

// outcome is a report as it travels and as -o json prints it. With an error it holds what was done until then.
type outcome struct {
	kube.Report
	Error string `json:"error,omitempty"`
}

// listenControl listens on the socket, which nobody but this account may connect to at any moment, and takes the place
// of one that a killed htcd has left. The Lease sees to it that no other htcd of this directory is at work.
func listenControl(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is there and is no socket", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// The mode of a socket that is not bound yet is the one that its file is made with (Linux).
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
		return errors.Join(err, failed)
	}}
	return private.Listen(context.Background(), "unix", path)
}

// serveControl answers until ctx ends; a pass that is under way is broken off then, which leaves nothing half-done.
func serveControl(ctx context.Context, listener net.Listener, r reconciler, synced func() bool, grace time.Duration) error {
	server := &http.Server{
		Handler: controlHandler(r, synced), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(bound)
	<-served // http.ErrServerClosed, by Shutdown
	return err
}

// maxQuestion is far more than a scope takes.
const maxQuestion = 4 << 10

func controlHandler(r reconciler, synced func() bool) http.Handler {
	var one sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reconcile", func(w http.ResponseWriter, request *http.Request) {
		var o kube.ReconcileOptions
		if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxQuestion)).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if !synced() {
			http.Error(w, "htcd has only just begun; try again", http.StatusServiceUnavailable)
			return
		}
		one.Lock()
		defer one.Unlock()
		report, err := r.Reconcile(request.Context(), o)
		answer := outcome{Report: report}
		if err != nil {
			answer.Error = err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // whoever asked may have gone
	})
	return mux
}

// errNoDaemon says that no htcd answers on the socket.
var errNoDaemon = errors.New("no htcd answers on the control socket")

// askDaemon lets the running htcd do the pass. It waits for as long as that takes.
func askDaemon(ctx context.Context, socket string, o kube.ReconcileOptions) (outcome, error) {
	question, err := json.Marshal(o)
	if err != nil {
		return outcome{}, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://htcd/reconcile", bytes.NewReader(question))
	if err != nil {
		return outcome{}, err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return outcome{}, errNoDaemon
	}
	if errors.Is(err, fs.ErrPermission) {
		return outcome{}, fmt.Errorf("%s belongs to another account: run this as the one that htcd run has", socket)
	}
	if errors.Is(err, io.EOF) {
		return outcome{}, errors.New("the running htcd went away before it had answered")
	}
	if err != nil {
		return outcome{}, fmt.Errorf("ask the running htcd: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		words, _ := io.ReadAll(io.LimitReader(response.Body, maxQuestion))
		return outcome{}, fmt.Errorf("the running htcd says: %s", bytes.TrimSpace(words))
	}
	var answer outcome
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return outcome{}, fmt.Errorf("the running htcd went away before it had answered: %w", err)
	}
	return answer, nil
}
