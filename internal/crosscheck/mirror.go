package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Mirror shows the jobs of a schedd in the schedd's place. It may be behind, show only some jobs, or be wrong. So
// HTCondor itself is asked
//
//   - about every run whose jobs the mirror does not show in full, or for which it says that files have never arrived
//     or that an ended job goes on: only HTCondor can say that a job is gone, must be sent again, or is not over,
//   - about everything every comparedEvery, which also tells whether the mirror is right,
//   - whenever the mirror must not be used, or does not answer.
type Mirror interface {
	Schedd
	// Usable returns why the mirror must not be used now, nil if it may be.
	Usable() error
	// Held records what HTCondor has answered about somebody's jobs: when the schedd's queue was set up, in Unix
	// seconds (0: unknown), and for which of the jobs the mirror was wrong. That counts until HTCondor is asked about
	// the same ones again.
	Held(whose string, born int64, differ []string)
}

// comparedEvery is how often a mirror is compared with HTCondor.
const comparedEvery = 10 * time.Minute

// Hinted is the kind of the passes that a mirror's hint causes.
const Hinted = "hint"

// mirrors holds a Checker for each mirror. What passes through a mirror have established does not count for those that
// ask HTCondor.
type mirrors struct {
	mu  sync.Mutex
	all map[schedd.Endpoint]*mirrored
}

type mirrored struct {
	Mirror
	checker *Checker
}

// mirrored returns that of an endpoint, nil if it has none.
func (c *Checker) mirrored(e schedd.Endpoint) *mirrored {
	if c.Mirrors == nil {
		return nil
	}
	m := c.Mirrors(e)
	if m == nil {
		return nil
	}
	c.mirrors.mu.Lock()
	defer c.mirrors.mu.Unlock()
	known := c.mirrors.all[e]
	if known == nil {
		known = &mirrored{m, &Checker{
			Driver: Driver[RunObserver]{
				Ledger: c.Ledger, Schedd: m, As: c.As, Now: c.Now, Observer: c.Observer, Whole: c.Whole,
			},
			Kind: c.Kind, GoesOn: c.GoesOn,
			absent: func(ctx context.Context, id schedd.Identity, t backend.Target, runs []ledger.Run) error {
				c.started(ctx, id, t)
				l := &look{Look: Look{History: true}, target: t}
				_, err := c.checkWhole(ctx, id, runs, l)
				if err == nil && l.missing.Jobs == 0 {
					c.Observer.Missing(t, l.missing)
				}
				return err
			},
		}}
		if c.mirrors.all == nil {
			c.mirrors.all = map[schedd.Endpoint]*mirrored{}
		}
		c.mirrors.all[e] = known
	}
	return known
}

// doubts reports whether something is to be removed, sent again or taken back on the word of a mirror: HTCondor itself
// is asked about such a run.
func (c *Checker) doubts(k *comparison) bool {
	return c.absent != nil && (k.stuck || k.takesBack || len(k.unstaged) > 0)
}

// mirroredOr has something done through the endpoint's mirror, or else by asking HTCondor.
func (c *Checker) mirroredOr(e schedd.Endpoint, do func(*Checker) error) error {
	if m := c.mirrored(e); m != nil && m.Usable() == nil {
		if err := do(m.checker); !errors.Is(err, schedd.ErrMirror) {
			return err
		}
	}
	return do(c)
}

// whole makes one pass over a target, through its mirror unless that is to be held against HTCondor.
func (c *Checker) whole(ctx context.Context, id schedd.Identity, g backend.Group) error {
	m := c.mirrored(id.Endpoint)
	if m == nil {
		return c.through(ctx, id, g)
	}
	last := c.Mark(g.Target).At
	if m.Usable() == nil && !last.IsZero() && c.Now().Sub(last).Abs() < comparedEvery {
		if err := m.checker.through(ctx, id, g); !errors.Is(err, schedd.ErrMirror) {
			return err
		}
	}
	if err := c.through(ctx, id, g); err != nil {
		return err
	}
	return c.hold(ctx, id, g, m)
}

// Hint makes a pass through an endpoint's mirror, which says that something has changed.
func (c *Checker) Hint(ctx context.Context, e schedd.Endpoint) error {
	m := c.mirrored(e)
	if m == nil || m.Usable() != nil {
		return nil // the next pass asks HTCondor
	}
	there := func(tx *ledger.Tx) ([]ledger.Run, error) {
		runs, err := c.open(tx)
		elsewhere := func(run ledger.Run) bool { return backend.TargetOf(run).Endpoint != e }
		return slices.DeleteFunc(runs, elsewhere), err
	}
	return m.checker.Each(ctx, Hinted, there, m.checker.through)
}

// hold compares a mirror with HTCondor, which is asked in between two questions to the mirror: what changes meanwhile
// is no difference.
func (c *Checker) hold(ctx context.Context, id schedd.Identity, g backend.Group, m *mirrored) error {
	before, err := states(ctx, m, id, g.Runs)
	var said, after map[string]condor.JobStatus
	if err == nil {
		if said, err = states(ctx, c.Schedd, id, g.Runs); err != nil {
			return err
		}
		after, err = states(ctx, m, id, g.Runs)
	}
	born := c.Daemon(g.Target).QueueBorn
	// Other passes hold the jobs of other accounts, and those of the other kind, against it.
	whose := fmt.Sprintf("%s of %s/%s", c.Kind, g.Namespace, g.Secret)
	if err != nil { // whether it can be used is not for HTCondor to say
		m.Held(whose, born, nil)
		return nil
	}
	m.Held(whose, born, differing(before, said, after))
	return nil
}

// states returns those of the jobs of runs.
func states(ctx context.Context, s Schedd, id schedd.Identity, runs []ledger.Run) (map[string]condor.JobStatus, error) {
	ours, all := map[runKey]bool{}, map[string]condor.JobStatus{}
	for _, run := range runs {
		ours[keyOf(run)] = true
	}
	for _, question := range questions(runs) {
		err := s.Query(ctx, id, schedd.Query{Where: question}, func(j condor.Job) error {
			if ours[keyOfJob(j)] {
				all[j.ID()] = j.Status
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("hold the mirror against HTCondor: %w", err)
		}
	}
	return all, nil
}

// maxDiffering is how many jobs are named.
const maxDiffering = 20

// differing returns the jobs of which HTCondor said something that the mirror said neither before nor after, in words.
func differing(before, said, after map[string]condor.JobStatus) (all []string) {
	word := func(s condor.JobStatus) string {
		if s == 0 {
			return "not in the queue"
		}
		return s.String()
	}
	note := func(id string) {
		if is, shown := said[id], before[id]; shown == after[id] && is != shown {
			all = append(all, fmt.Sprintf("%s is %s, and not %s", id, word(is), word(shown)))
		}
	}
	for id := range said {
		note(id)
	}
	for id := range before {
		if _, both := said[id]; !both {
			note(id)
		}
	}
	slices.SortFunc(all, strings.Compare)
	return all[:min(len(all), maxDiffering)]
}
