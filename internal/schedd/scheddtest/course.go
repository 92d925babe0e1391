package scheddtest

import (
	"math/rand/v2"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Course is what a property test of passes lets happen: events, and between passes what befalls a schedd.
type Course struct {
	Schedd *Schedd
	Rand   *rand.Rand
	Skew   *time.Duration // of the schedd's clock

	Events int // before a pass there are fewer than this
	Apart  int // at most so many seconds lie between two

	Event   func()                 // something happens in HTCondor
	Tick    func(most int)         // up to so many seconds go by
	Refresh func()                 // one is made
	Pass    func()                 // a cross-check is made, and judged
	Restore func(old []condor.Job) // an older queue is put back
}

// Run has so many passes made.
func (c Course) Run(passes int) {
	for range passes {
		for range c.Rand.IntN(c.Events) {
			c.Event()
			c.Tick(c.Apart)
		}
		switch c.Rand.IntN(12) {
		case 0: // the schedd's clock is set
			*c.Skew = time.Duration(c.Rand.IntN(1201)-600) * time.Second
		case 1:
			c.Tick(1000)
		case 2: // the schedd comes back with an older queue, or its own
			old := c.Schedd.Jobs()
			for range 3 {
				c.Event()
			}
			c.Pass()
			c.Tick(100)
			c.Schedd.Restart()
			if c.Rand.IntN(2) == 0 {
				c.Restore(old)
			}
		case 3, 4:
			c.Refresh()
			c.Tick(10)
		}
		c.Pass()
	}
}
