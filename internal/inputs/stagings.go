package inputs

import (
	"context"
	"errors"
	"sync"
)

// ErrStopped is the error of a staging that was stopped.
var ErrStopped = errors.New("the inputs are no longer needed as they were")

// Stagings stops stagings whose HTCJob has changed meanwhile. Its methods may be called by several goroutines; a key
// has one staging at a time.
type Stagings struct {
	mu     sync.Mutex
	stop   map[string]context.CancelCauseFunc
	closed bool
}

// Begin returns the context of a staging, from resolving to the last file. The caller must call end.
func (s *Stagings) Begin(ctx context.Context, key string) (staging context.Context, end func()) {
	staging, stop := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		stop(ErrStopped)
	}
	if s.stop == nil {
		s.stop = map[string]context.CancelCauseFunc{}
	}
	s.stop[key] = stop
	return staging, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stop, key)
		stop(nil)
	}
}

// Stop stops the staging of a key, if there is one.
func (s *Stagings) Stop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.stop[key]; stop != nil {
		stop(ErrStopped)
	}
}

// Close stops all stagings, and those that begin afterwards.
func (s *Stagings) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, stop := range s.stop {
		stop(ErrStopped)
	}
}

// stopped replaces an error by ErrStopped if the staging was stopped: whatever failed did so because of that.
func stopped(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrStopped) {
		return ErrStopped
	}
	return err
}
