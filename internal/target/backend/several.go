package backend

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Several chooses between the schedds of a pool that has several. Set its fields before its first use.
type Several struct {
	Schedd interface {
		Ping(ctx context.Context, id schedd.Identity, p schedd.Permission) (account string, err error)
		State(endpoint schedd.Endpoint) Reachability
	}
	Credentials Credentials
	Limits      *Limits
	// Open counts htcd's open jobs at each endpoint.
	Open func(ctx context.Context) (map[schedd.Endpoint]int, error)
	Now  func() time.Time

	mu    sync.Mutex
	open  map[schedd.Endpoint]int // as counted last, and what was sent since
	until time.Time               // when to count again
	last  map[string]schedd.Endpoint
}

// askAgain is how often a schedd that does not answer is asked while another one does.
const askAgain = 30 * time.Second

// Choose gives a target without a schedd one of these: one that answers, is not at its limit if another is not, and has
// the fewest open jobs. It returns the identity to send as.
func (s *Several) Choose(ctx context.Context, t Target, schedds []string, jobs int) (Target, schedd.Identity, error) {
	open, err := s.count(ctx)
	if err != nil {
		return t, schedd.Identity{}, err
	}
	var all []candidate
	for _, name := range schedds {
		c := candidate{Target: t}
		c.Endpoint.Schedd = name
		if c.id, err = s.Credentials.Identity(ctx, c.Target); err != nil {
			return t, c.id, err
		}
		state := s.Schedd.State(c.Endpoint)
		c.answers, c.open = state.Asked && !state.Down, open[c.Endpoint]
		switch {
		case state.Down && s.Now().Sub(state.At) < askAgain:
			c.hope = little
		case s.Limits.At(c.id, jobs, s.Now()):
			c.hope = some
		}
		all = append(all, c)
	}
	slices.SortStableFunc(
		all,
		func(a, b candidate) int { return cmp.Or(cmp.Compare(a.hope, b.hope), cmp.Compare(a.open, b.open)) },
	)
	var silent error
	for _, c := range all {
		if !c.answers {
			if _, err := s.Schedd.Ping(ctx, c.id, schedd.Reading); err != nil {
				if silent != nil {
					err = fmt.Errorf("%w; %w", silent, err)
				}
				silent = err
				continue
			}
		}
		s.chosen(schedds, c.Endpoint, jobs)
		return c.Target, c.id, nil
	}
	return t, schedd.Identity{}, fmt.Errorf("none of the pool's schedds answers: %w", silent)
}

// candidate is one of the schedds.
type candidate struct {
	Target
	id      schedd.Identity
	answers bool // when it was last asked
	hope    hope
	open    int
}

// hope is how promising a schedd is.
type hope int

const (
	good   hope = iota
	some        // it is at its limit
	little      // it did not answer a moment ago
)

// maxCountAge bounds how long a count of open jobs is used.
const maxCountAge = time.Second

// count returns how many jobs are open at each endpoint. Counting may take at most a tenth of the time.
func (s *Several) count(ctx context.Context) (map[schedd.Endpoint]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began := s.Now(); !began.Before(s.until) {
		open, err := s.Open(ctx)
		if err != nil {
			return nil, err
		}
		ended := s.Now()
		s.open, s.until = open, ended.Add(min(9*ended.Sub(began), maxCountAge))
	}
	return maps.Clone(s.open), nil
}

func (s *Several) chosen(schedds []string, endpoint schedd.Endpoint, jobs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]schedd.Endpoint{}
	}
	s.last[strings.Join(schedds, " ")] = endpoint
	s.open[endpoint] += jobs
}

// Last returns which of these schedds was chosen last, the zero value if none was.
func (s *Several) Last(schedds []string) schedd.Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[strings.Join(schedds, " ")]
}

// OpenJobs returns Several.Open for what a ledger has.
func OpenJobs(book ledger.Readable) func(ctx context.Context) (map[schedd.Endpoint]int, error) {
	return func(ctx context.Context) (open map[schedd.Endpoint]int, err error) {
		err = book.Read(ctx, func(tx *ledger.Tx) error {
			all, err := tx.OpenProcs()
			open = make(map[schedd.Endpoint]int, len(all))
			for _, at := range all {
				open[schedd.Endpoint{Collector: at.Collector, Schedd: at.Schedd}] = at.Procs
			}
			return err
		})
		return open, err
	}
}
