package jobcredentials

import (
	"sync"
	"time"
)

const (
	shortest   = 30 * time.Second // between two questions of a job
	mostPerSec = 1000             // questions of all jobs
)

// pace chooses how often jobs ask. Of all that asked during one period each asks once, so their number is known at its
// end.
type pace struct {
	mu       sync.Mutex
	began    time.Time
	asked    int
	interval time.Duration
}

// next counts a question and returns when to ask again.
func (p *pace) next(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interval = max(p.interval, shortest)
	if took := now.Sub(p.began); took >= p.interval {
		if took < 2*p.interval {
			jobs := float64(p.asked) * float64(p.interval) / float64(took)
			p.interval = max(shortest, time.Duration(jobs/mostPerSec*float64(time.Second)))
		}
		p.began, p.asked = now, 0
	}
	p.asked++
	return p.interval
}
