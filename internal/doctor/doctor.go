// Package doctor finds out what keeps htcd from working, one thing after the other, and says what to do about it. It runs
// beside a working htcd: it takes no Lease, does not open the ledger, and what it writes is gone when it ends.
//
// Each check knows on which others it stands. Where one of those found a problem it is skipped: its own finding would be
// about theirs.
package doctor

import (
	"context"
	"errors"
	"time"
)

// Verdict is what came of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Problem Verdict = "problem"
	Skipped Verdict = "skipped"
)

// Finding is a check with what came of it.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"`
	Do      string  `json:"do,omitempty"` // what to do, where there is a problem
}

// Check is one thing that can be tried.
type Check struct {
	Name  string
	Needs []string // the names of earlier checks that must be ok
	// Try returns what it found in words. Its error is a *Trouble where it is known what to do, or notHere.
	Try func(ctx context.Context) (string, error)
	// Settles is how long a problem may be that of a htcd which has just begun: it is tried again until then.
	Settles time.Duration
}

// leads is how long Kubernetes may take to lead a Service to a pod that is ready (seen: 2 s).
const leads = 5 * time.Second

// Trouble is a problem and what to do about it.
type Trouble struct{ What, Do string }

func (t *Trouble) Error() string { return t.What }

// notHere is why a check has nothing to look at in this installation.
type notHere string

func (n notHere) Error() string { return string(n) }

// Run tries one after the other, none for longer than the bound, and hands on each finding as soon as it is there. It tells
// whether there was no problem.
func Run(ctx context.Context, checks []Check, bound time.Duration, found func(Finding)) bool {
	well := true
	good := map[string]bool{}
	for _, c := range checks {
		f := try(ctx, c, good, bound)
		good[c.Name] = f.Verdict == OK
		well = well && f.Verdict != Problem
		found(f)
	}
	return well
}

func try(ctx context.Context, c Check, good map[string]bool, bound time.Duration) Finding {
	for _, need := range c.Needs {
		if !good[need] {
			return Finding{c.Name, Skipped, "needs " + need, ""}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	message, err := settled(ctx, c)
	if err == nil {
		return Finding{c.Name, OK, message, ""}
	}
	if n, ok := errors.AsType[notHere](err); ok {
		return Finding{c.Name, Skipped, string(n), ""}
	}
	f := Finding{c.Name, Problem, err.Error(), "see docs/troubleshoot.md"}
	if t, ok := errors.AsType[*Trouble](err); ok {
		f.Do = t.Do
	}
	return f
}

// settled tries until there is no problem any more, or none that can pass by itself.
func settled(ctx context.Context, c Check) (message string, err error) {
	for end := time.Now().Add(c.Settles); ; {
		message, err = c.Try(ctx)
		if err == nil || errors.As(err, new(notHere)) || !time.Now().Before(end) {
			return message, err
		}
		select {
		case <-ctx.Done():
			return message, err
		case <-time.After(c.Settles / 5):
		}
	}
}
