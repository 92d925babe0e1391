// Package doctor finds out what keeps htcd from working, one check after the other, and explains what to do. It runs
// beside a working htcd: it takes no Lease, does not open the ledger, and deletes what it writes.
//
// Each check names the checks it depends on. If one of those found a problem it is skipped, since its own finding would
// only repeat theirs.
package doctor

import (
	"context"
	"errors"
	"time"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Problem Verdict = "problem"
	Skipped Verdict = "skipped"
)

// Finding is a check with its result.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"`
	Do      string  `json:"do,omitempty"` // what to do about a problem
}

// Check is one thing to try.
type Check struct {
	Name  string
	Needs []string // the names of earlier checks that must be ok
	// Try describes what it found. Its error is a *Trouble if it is known what to do, or notHere.
	Try func(ctx context.Context) (string, error)
	// Settles is how long the problem may be one of a starting htcd: until then the check is repeated.
	Settles time.Duration
}

// leads is how long Kubernetes may need until a Service reaches a pod that is ready (seen: 2 s).
const leads = 5 * time.Second

// Trouble is a problem and what to do about it.
type Trouble struct{ What, Do string }

func (t *Trouble) Error() string { return t.What }

// notHere is why a check does not apply to this installation.
type notHere string

func (n notHere) Error() string { return string(n) }

// run makes one check after the other, none for longer than the bound, and passes on each finding at once. It reports
// whether there was no problem.
func run(ctx context.Context, checks []Check, bound time.Duration, found func(Finding)) bool {
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

// settled repeats a check until it finds no problem, or one that cannot pass by itself.
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
