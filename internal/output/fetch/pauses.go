package fetch

import (
	"fmt"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

const (
	// fetchedAtOnce is how many procs one fetch covers: 50 small ones take half a second, a tenth of it for the
	// commands themselves (measured).
	fetchedAtOnce = 50
	// The pauses between tries to fetch one job's output that the schedd fails to send: temporary causes, such as an
	// unavailable file server, last minutes or hours.
	firstPause = 5 * time.Second
	lastPause  = time.Hour
	// giveUpAfter is how long such output is requested when the schedd says that its files do not exist.
	giveUpAfter = 12 * time.Hour
	// goWithoutAfter is how long single files are requested that the schedd says do not exist, while the rest of the
	// job's output arrives.
	goWithoutAfter = 10 * time.Minute
)

// pauses remembers, by the key of their HTCJob, which jobs' output could not be sent and how many jobs of one are
// fetched at once. It is kept in memory only, and dropped when nothing of the HTCJob is left to fetch. Safe for
// concurrent use.
type pauses struct {
	mu sync.Mutex
	m  map[string]*jobFailures
}

type jobFailures struct {
	batch int // the maximum at once; 0: fetchedAtOnce
	procs map[failedProc]failing
}

type failedProc struct {
	uid           string
	attempt, proc int
}

// failing is a job whose output has been requested without success.
type failing struct {
	since, next time.Time
	pause       time.Duration
	err         error
}

func (s *pauses) job(key string) *jobFailures {
	if s.m == nil {
		s.m = map[string]*jobFailures{}
	}
	if s.m[key] == nil {
		s.m[key] = &jobFailures{procs: map[failedProc]failing{}}
	}
	return s.m[key]
}

// failed records that a proc's output did not arrive. Each time the pause before the next try doubles.
func (s *pauses) failed(run ledger.Run, proc int, err error, now time.Time) failing {
	s.mu.Lock()
	defer s.mu.Unlock()
	procs := s.job(keyOf(run)).procs
	key := failedProc{run.UID, run.Attempt, proc}
	f, again := procs[key]
	if !again {
		f = failing{since: now, pause: firstPause / 2}
	}
	f.pause = min(2*f.pause, lastPause)
	f.next, f.err = now.Add(f.pause), err
	procs[key] = f
	return f
}

// done drops procs with nothing left to fetch; after a complete batch many are fetched at once again.
func (s *pauses) done(run ledger.Run, procs []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job := s.m[keyOf(run)]; job != nil {
		job.batch = 0
		for _, proc := range procs {
			delete(job.procs, failedProc{run.UID, run.Attempt, proc})
		}
	}
}

// smaller halves how many jobs of an HTCJob are fetched at once.
func (s *pauses) smaller(key string, batch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job(key).batch = max(batch/2, 1)
}

func (s *pauses) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, key)
}

// choose returns the procs of one fetch: as many as allowed of those that never failed, else one whose pause is over.
// If there is neither, it returns the one that comes next, if any.
func (s *pauses) choose(run ledger.Run, procs []ledger.Proc, now time.Time) (chosen []ledger.Proc, next *failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job := s.m[keyOf(run)]
	if job == nil {
		return procs[:min(len(procs), fetchedAtOnce)], nil
	}
	var good, due []ledger.Proc
	for _, p := range procs {
		f, bad := job.procs[failedProc{run.UID, run.Attempt, p.Proc}]
		switch {
		case !bad:
			good = append(good, p)
		case !now.Before(f.next):
			due = append(due, p)
		case next == nil || f.next.Before(next.next):
			next = &f
		}
	}
	most := fetchedAtOnce
	if job.batch > 0 {
		most = job.batch
	}
	if len(good) > 0 {
		return good[:min(len(good), most)], nil
	}
	if len(due) > 0 {
		return due[:1], nil
	}
	return nil, next
}

// pausedError says that the rest of an HTCJob's output is requested later.
type pausedError struct {
	until time.Time
	err   error
}

func (e *pausedError) Error() string {
	return fmt.Sprintf("asked again at %s: %v", e.until.UTC().Format(time.RFC3339), e.err)
}

func (e *pausedError) Unwrap() error { return e.err }
