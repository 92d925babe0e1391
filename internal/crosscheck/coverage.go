package crosscheck

import (
	"maps"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Coverage is what the passes over a target have established together: every change that HTCondor dates before them is
// in the ledger.
type Coverage struct {
	Began   time.Time // when the latest of them began
	Clock   int64     // the same by the schedd's clock; 0: unknown
	Whole   time.Time // when the latest began that asked about everything
	Started int64     // when the schedd had been started; 0: unknown
	// Runs with jobs whose ads could not be read, or whose rows not be written, and, of a pass, those in which it has
	// looked for some and found none.
	unread, read map[runKey]bool
}

const (
	// margin is how much earlier than the latest pass the period begins that the next one asks about. It covers the
	// time between the moment by which the schedd dates a change and the moment at which it shows it, and what Apply
	// leaves to the next pass (Settling).
	margin = time.Minute

	// changesAtOnce is the maximum number of changes in one answer; of more jobs everything is asked, in parts.
	// condor_q takes 40 MB for them, htcd half of it.
	changesAtOnce = 10_000
)

// Recent returns the period about which the next pass has to ask. ok is false if it has to ask about everything: none
// has for so long, or the schedd was started since, perhaps with another queue, or one of these is not known. 0 is
// always.
func (s Coverage) Recent(now time.Time, started int64, every time.Duration) (p schedd.Period, ok bool) {
	switch age := now.Round(0).Sub(s.Began.Round(0)); {
	case s.Clock == 0, started == 0, started != s.Started:
	case age < 0, now.Sub(s.Whole) >= every:
	default:
		return schedd.Period{From: s.Clock - int64(margin/time.Second), Age: age + margin, Most: changesAtOnce}, true
	}
	return schedd.Period{}, false
}

// covers reports whether the passes since a cross-check have looked at a run: at every job that they could read.
func (s Coverage) covers(run ledger.Run, since Mark) bool {
	return !s.unread[keyOf(run)] && (run.Checked.IsZero() || run.Checked.After(since.At.Add(-2*BetweenChecks)))
}

// Next returns the coverage that a pass adds which began at a time, and at another by the schedd's clock (0: no ad said
// so); whole: it asked about everything.
func (s Coverage) Next(began time.Time, clock, started int64, whole bool) Coverage {
	now := Coverage{Began: began, Clock: clock, Started: started}
	switch {
	case whole:
		now.Whole = began
	case clock == 0: // no job has changed, and so nobody said what time it is
		now.Began, now.Clock = s.Began, s.Clock
	}
	return now
}

// After returns the coverage after a pass, which may have begun before another that ended earlier.
func (s Coverage) After(pass Coverage) Coverage {
	unread := map[runKey]bool{}
	for run := range s.unread {
		if !pass.read[run] && (pass.read == nil || pass.Whole.IsZero()) {
			unread[run] = true
		}
	}
	maps.Copy(unread, pass.unread)
	whole := s.Whole
	if pass.Whole.After(whole) {
		whole = pass.Whole
	}
	if pass.Began.Before(s.Began) {
		pass = s
	}
	pass.Whole, pass.unread, pass.read = whole, unread, nil
	return pass
}
