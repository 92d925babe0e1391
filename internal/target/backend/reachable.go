package backend

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Reachability is what is known about an endpoint.
type Reachability struct {
	Asked    bool
	At       time.Time // when it was last asked
	Answered time.Time // when it last answered; zero: never since htcd started
	Down     bool      // it did not answer when it was last asked
	Usual    bool      // the site, not a user, has named it at some time
	Reason   string    // why it is in this state, fit for a condition
	Message  string

	Missing int    // jobs that were there and that it does not show, and that are not called lost yet
	Doubt   string // why they are not

	Pace   Pace   // the most that it is asked now
	Slowed string // why that is less than usual; "": it is not
}

// ReasonJobsMissing is that of BackendReachable when a schedd answers as another one might.
const ReasonJobsMissing = "JobsMissing"

// MissingMessage says what is missing at an endpoint, and what becomes of it.
func (r Reachability) MissingMessage() string {
	return fmt.Sprintf(
		"the schedd answers, but neither its queue nor its history shows %d of htcd's jobs that were there, and %s: perhaps its spool is not mounted, "+
			"or another one answers in its place. What is still missing in an hour fails as Lost",
		r.Missing,
		r.Doubt,
	)
}

// reachable remembers whether each endpoint answered when it was last asked. The zero value is ready to use.
type reachable struct {
	mu      sync.Mutex
	m       map[schedd.Endpoint]Reachability
	missing map[awayOf]away
}

// awayOf is whose jobs are missing: those of one kind and account.
type awayOf struct {
	kind string
	Target
}

type away struct {
	at    time.Time
	jobs  int
	doubt string
}

// missingFor is how long it is believed that jobs are missing.
const missingFor = time.Hour

// note records that an endpoint answered, or why not, and reports whether that is new.
func (r *reachable) note(endpoint schedd.Endpoint, err error, at time.Time) (changed bool) {
	now := Reachability{
		Asked:    true,
		At:       at,
		Answered: at,
		Reason:   "Answered",
		Message:  "the schedd answered when last asked",
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.m[endpoint]
	now.Usual = before.Usual
	if err != nil {
		now.Down, now.Answered = true, before.Answered
		now.Reason, now.Message = condor.KindOf(err).String(), fmt.Sprintf("%v; %s", err, lastAnswer(before.Answered))
	}
	r.set(endpoint, now)
	return !before.Asked || before.Down != now.Down
}

// refused records how an endpoint that has not answered refuses htcd now: it is not stopped any more. One that answers
// may refuse one account alone.
func (r *reachable) refused(endpoint schedd.Endpoint, err error, at time.Time) {
	if r.get(endpoint).Down {
		r.note(endpoint, err, at)
	}
}

// lastAnswer distinguishes a schedd that has stopped answering from one that may never have existed.
func lastAnswer(at time.Time) string {
	if at.IsZero() {
		return "it has not answered since htcd began"
	}
	return "it answered last at " + at.UTC().Format(time.RFC3339)
}

// named records that the site itself sends jobs to an endpoint.
func (r *reachable) named(endpoint schedd.Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.m[endpoint]
	now.Usual = true
	r.set(endpoint, now)
}

func (r *reachable) set(endpoint schedd.Endpoint, now Reachability) {
	if r.m == nil {
		r.m = map[schedd.Endpoint]Reachability{}
	}
	r.m[endpoint] = now
}

func (r *reachable) get(endpoint schedd.Endpoint) Reachability {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[endpoint]
}

// miss records that so many jobs of a kind and target are missing, and why they are not called lost.
func (r *reachable) miss(of awayOf, is away) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing == nil {
		r.missing = map[awayOf]away{}
	}
	r.missing[of] = is
	if is.jobs == 0 {
		delete(r.missing, of)
	}
}

// missed sums up what is missing at an endpoint.
func (r *reachable) missed(endpoint schedd.Endpoint, now time.Time) (jobs int, doubt string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, is := range r.missing {
		if of.Endpoint == endpoint && now.Sub(is.at) < missingFor {
			jobs, doubt = jobs+is.jobs, is.doubt
		}
	}
	return jobs, doubt
}

func (r *reachable) all() map[schedd.Endpoint]Reachability {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.m)
}
