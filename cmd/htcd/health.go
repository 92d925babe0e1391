package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// health answers the probes. Alive is whoever can answer; ready is the one that works, so that a Service leads to the
// holder of the Lease only.
type health struct {
	state   atomic.Pointer[string]
	metrics http.Handler // nil: none are shown
}

// ready is the one state that /readyz answers with 200.
const ready = "ready"

func (h *health) set(state string) { h.state.Store(&state) }

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		state := "starting"
		if s := h.state.Load(); s != nil {
			state = *s
		}
		if state != ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, state)
	})
	if h.metrics != nil {
		mux.Handle("GET /metrics", h.metrics)
	}
	return mux
}

func (h *health) server() *http.Server {
	return &http.Server{Handler: h.handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
}
