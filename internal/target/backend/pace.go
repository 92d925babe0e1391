package backend

import (
	"fmt"
	"time"
)

// Pace is the most that htcd asks of a schedd.
type Pace struct {
	Commands  int     // at once
	PerSecond float64 // begun
}

// DefaultPace is more than an undisturbed htcd needs.
var DefaultPace = Pace{Commands: 16, PerSecond: 50}

// slowest is the pace at which a schedd is asked however busy it is. Below two commands at once a long transfer would
// keep htcd from learning anything.
var slowest = Pace{Commands: 2, PerSecond: 1}

// Load is what shows how busy a schedd is.
type Load struct {
	// DutyCycle is the share of its recent time in which the schedd was busy, as it tells the collector, every 5
	// minutes by default.
	DutyCycle float64
	Took      time.Duration // its answer to a question of constant size
	Usually   time.Duration // the same, when it was quickest; 0: unknown
	Late      float64       // share of the questions that were killed at their deadline though it answers
}

const (
	busy = 0.95 // share of its time: from there on commands wait for each other
	calm = 0.80

	// slow is how many times its quickest answer a slow one takes, and tooLong how long it takes at least: the start of
	// the tool alone may take a tenth of that on a busy machine of ours.
	slow    = 8
	tooLong = 2 * time.Second

	tooLate = 0.5 // share of the questions
)

// Next returns the pace after the present one, and why it is below most; "" if it is not. The pace is halved while the
// schedd is busy, and grows by a quarter while it is not, so that several htcds, and its other users, find a balance.
func (most Pace) Next(now Pace, l Load) (next Pace, why string) {
	switch {
	case l.DutyCycle >= busy:
		why = fmt.Sprintf("it is busy for %.0f %% of its time (RecentDaemonCoreDutyCycle)", 100*l.DutyCycle)
	case l.Usually > 0 && l.Took >= tooLong && l.Took >= slow*l.Usually:
		why = fmt.Sprintf(
			"it took %s to answer what it has answered in %s",
			l.Took.Round(time.Millisecond),
			l.Usually.Round(time.Millisecond),
		)
	case l.Late >= tooLate:
		why = fmt.Sprintf("%.0f %% of the questions did not end before their deadline", 100*l.Late)
	}
	switch {
	case why != "":
		next = Pace{now.Commands / 2, now.PerSecond / 2}
	case l.DutyCycle >= calm:
		next = now
	default:
		next = Pace{now.Commands + max(1, now.Commands/4), now.PerSecond * 1.25}
	}
	next = Pace{
		min(max(next.Commands, slowest.Commands), most.Commands),
		min(max(next.PerSecond, slowest.PerSecond), most.PerSecond),
	}
	if why == "" && next != most {
		why = "it has been busy"
	}
	return next, why
}

// Valid reports whether a site may set this as the most.
func (most Pace) Valid() bool {
	return most.Commands >= slowest.Commands && most.PerSecond >= slowest.PerSecond && most.PerSecond <= 1e6
}

// String describes the pace for people.
func (p Pace) String() string {
	return fmt.Sprintf("at most %d commands at once, %.3g a second", p.Commands, p.PerSecond)
}

// maxRest bounds how much a Rest delays what waits for it, and a shutdown.
const maxRest = time.Second

// Rest returns how long to pause after commands that took so long: nine tenths of the time are left to a schedd's other
// clients, and what comes meanwhile can go together.
func Rest(took time.Duration) time.Duration { return min(9*took, maxRest) }
