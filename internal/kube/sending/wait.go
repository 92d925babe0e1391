package sending

import "time"

// Waiting is returned when nothing is wrong but HTCondor needs time.
type Waiting struct {
	After   time.Duration
	Message string
	Reason  string // CamelCase; empty: the schedd is asked

	Condition string // the one that says so though something was sent before; empty: none
}

func (w *Waiting) Error() string { return w.Message }

// Paused is an error that determines the time of the next try.
type Paused struct {
	After time.Duration
	Err   error
}

func (p *Paused) Error() string { return p.Err.Error() }
func (p *Paused) Unwrap() error { return p.Err }
