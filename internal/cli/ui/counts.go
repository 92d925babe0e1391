package ui

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// counts are jobs or nodes by their state.
type counts struct{ Waiting, Idle, Running, Held, Done, Failed, Futile int }

func (c counts) Total() int {
	return c.Waiting + c.Idle + c.Running + c.Held + c.Done + c.Failed + c.Futile
}

// look is how a state is shown: never by colour alone.
type look struct {
	State aggregate.NodeState
	Glyph string
	Code  byte // in the text that a grid is drawn from, see app.js
}

// looks are the states in the order of bars.
var looks = []look{
	{
		aggregate.NodeDone,
		"✓",
		'd',
	}, {aggregate.NodeFailed, "✗", 'f'}, {aggregate.NodeRunning, "▶", 'r'}, {aggregate.NodeHeld, "‖", 'h'},
	{aggregate.NodeIdle, "○", 'i'}, {aggregate.NodeWaiting, "·", 'w'}, {aggregate.NodeFutile, "–", 'u'},
}

func lookOf(s aggregate.NodeState) look {
	for _, l := range looks {
		if l.State == s {
			return l
		}
	}
	return look{s, "?", '.'}
}

func (c counts) of(s aggregate.NodeState) int {
	switch s {
	case aggregate.NodeDone:
		return c.Done
	case aggregate.NodeFailed:
		return c.Failed
	case aggregate.NodeRunning:
		return c.Running
	case aggregate.NodeHeld:
		return c.Held
	case aggregate.NodeIdle:
		return c.Idle
	case aggregate.NodeFutile:
		return c.Futile
	}
	return c.Waiting
}

// String is what a bar says without colour.
func (c counts) String() string {
	var parts []string
	for _, l := range looks {
		if n := c.of(l.State); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, l.State))
		}
	}
	return strings.Join(parts, ", ")
}

// segment is a part of a bar that is 100 wide.
type segment struct {
	State    aggregate.NodeState
	X, Width float64
}

// leastWidth lets the only job of many that failed be seen.
const leastWidth = 1.5

// Bar shares the width out, and gives each state that occurs some of it.
func (c counts) Bar() (segments []segment) {
	left, rest := 100.0, 0
	for _, l := range looks {
		if n := c.of(l.State); n > 0 {
			left -= leastWidth
			rest += n
		}
	}
	x := 0.0
	for _, l := range looks {
		if n := c.of(l.State); n > 0 {
			width := leastWidth + left*float64(n)/float64(rest)
			segments = append(segments, segment{l.State, x, width})
			x += width
		}
	}
	return segments
}

func countsOf(job *v1alpha1.HTCJob) counts {
	s := job.Status
	c := counts{
		Idle:    int(s.Idle),
		Running: int(s.Running),
		Held:    int(s.Held),
		Done:    int(s.Succeeded),
		Failed:  int(s.Failed),
	}
	if !s.Phase.Terminal() { // else they were never sent, or removed
		c.Waiting = max(0, job.Jobs()-c.Total())
	}
	return c
}

func countsOfNodes(s v1alpha1.NodeCounts) counts {
	c := counts{
		Idle:    int(s.Idle),
		Running: int(s.Running),
		Held:    int(s.Held),
		Done:    int(s.Done),
		Failed:  int(s.Failed),
		Futile:  int(s.Futile),
	}
	c.Waiting = max(0, int(s.Total)-c.Total())
	return c
}
