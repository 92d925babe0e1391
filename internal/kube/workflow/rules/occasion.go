package rules

import "time"

// Pace is how often a rule may act.
type Pace struct {
	Times int // at most; 0: any number of times
	// after which it acts again while its condition still holds; 0: only when that becomes true again
	Backoff time.Duration
}

// LeastPause is how long a rule waits at least before it acts again: its effect takes some seconds to be seen.
const LeastPause = 10 * time.Second

// State is what a rule has done so far.
type State struct {
	Holds bool // its condition held when it was last looked at
	Acts  int
	Acted time.Time // when it last did
}

// Next returns what becomes of a rule's state, given whether its condition holds; whether it acts now; and when to look
// again if nothing changes (the zero time: not at any time). A condition that becomes true too soon after an action
// counts as doing so when the pause is over.
func (p Pace) Next(s State, holds bool, now time.Time) (next State, acts bool, again time.Time) {
	next = s
	next.Holds = holds
	due := s.Acted.Add(max(p.Backoff, LeastPause))
	switch {
	case !holds, p.Times > 0 && s.Acts >= p.Times:
		return next, false, time.Time{}
	case s.Holds && p.Backoff == 0:
		return next, false, time.Time{}
	case s.Acts > 0 && now.Before(due):
		next.Holds = s.Holds
		return next, false, due
	}
	next.Acts, next.Acted = s.Acts+1, now
	return next, true, time.Time{}
}

// Again returns when a rule that has just acted may act again while its condition still holds, the zero time if that is
// not enough.
func (p Pace) Again(acted time.Time) time.Time {
	if p.Backoff == 0 {
		return time.Time{}
	}
	return acted.Add(max(p.Backoff, LeastPause))
}
