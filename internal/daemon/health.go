package daemon

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// health answers the probes. Any htcd that can answer is alive. The active one is ready, and with --pod-name also a
// standby: the Services then find the active one by its label (see label).
type health struct {
	state   atomic.Pointer[state]
	metrics http.Handler // nil: none are shown
}

// state is what /readyz answers: 200 or 503, and words.
type state struct {
	ready bool
	words string
}

// unready says what htcd waits for.
func (h *health) unready(words string) { h.state.Store(&state{false, words}) }

// asks says what htcd waits for. What it returns adds what is in the way, for as long as nothing else is said.
func (h *health) asks(words string) (fails func(error)) {
	said := &state{false, words}
	h.state.Store(said)
	return func(err error) {
		if now := (&state{false, words + ": " + err.Error()}); h.state.CompareAndSwap(said, now) {
			said = now
		}
	}
}

// ready says that htcd does what it should.
func (h *health) ready(words string) { h.state.Store(&state{true, words}) }

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		s := h.state.Load()
		if s == nil {
			s = &state{false, "starting"}
		}
		if !s.ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, s.words)
	})
	if h.metrics != nil {
		mux.Handle("GET /metrics", h.metrics)
	}
	return mux
}
