package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// How the output of a job comes here, and the job out of the queue:
//
//	completed, says HTCondor ── Transfer ──> a directory of this fetch alone ── Sync ──┐
//	                                                                                  │ one transaction
//	gone to the history <── Release <── fetched = 1, its directory in its place <─────┘
//
// Until Release the job waits in the queue with its output: whatever is broken off before is done again, and what a
// broken-off fetch has left is removed at the next start. Broken off after the transaction, the job is released by
// releaseForgotten.
//
// A fetch is for a number of procs of one run. Its keys have a queue and workers of their own, so that nothing waits for
// it, and namespaces take turns.

const (
	// fetchedAtOnce is how many procs one fetch is for: 50 small ones take half a second, of which the commands
	// themselves are a tenth (measured).
	fetchedAtOnce = 50
	// fetchTries is how often a job's output is asked for whose files the schedd cannot send.
	fetchTries = 3
)

// fetchable tells whether the output of a run is fetched. What an older htcd has sent has no place to go.
func (c *Controller) fetchable(run ledger.Run) bool {
	return run.OutputDir != "" && c.Output.Root != ""
}

// resumeFetches takes up what an earlier htcd has not come to.
func (c *Controller) resumeFetches(ctx context.Context) error {
	if c.Output.Root == "" {
		return nil
	}
	if err := c.Output.Sweep(true); err != nil {
		c.Log.Warn().Err(err).Msg("what is left of broken-off fetches is not removed")
	}
	return c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		runs, err := tx.UnfetchedRuns()
		if err != nil {
			return err
		}
		for _, run := range runs {
			c.fetches.Add(run.Namespace + "/" + run.Name)
		}
		return nil
	})
}

// fetchOne is fetch with its back-off, and tells the user when something is in the way.
func (c *Controller) fetchOne(ctx context.Context, key string) {
	defer c.queue.Add(key)
	more, err := c.fetch(ctx, key)
	if err == nil {
		c.fetches.Forget(key)
		c.unfetched.clear(key)
		if more {
			c.fetches.Add(key)
		}
		return
	}
	t := explainFetch(err)
	c.Told.fetchFailed(t.reason)
	if c.unfetched.set(key, t) {
		c.Log.Warn().Err(err).Str("job", key).Str("reason", t.reason).Msg("output not fetched yet")
		if job := c.get(key); job != nil {
			c.Events.Warning(job, t.reason, t.message)
		}
	}
	c.fetches.AddRateLimited(key)
}

// fetchNow ends the back-off of every fetch.
func (c *Controller) fetchNow() {
	for key := range c.unfetched.with(func(trouble) bool { return true }) {
		c.fetches.Forget(key)
		c.fetches.Add(key)
	}
}

// reasonNoSpace is a reason of the condition OutputFetched.
const reasonNoSpace = "NoSpace"

// noSpaceError says that the volume has no place for output.
type noSpaceError struct{ message string }

func (e *noSpaceError) Error() string { return e.message }

// explainFetch is explain for what is in the way of a fetch.
func explainFetch(err error) trouble {
	t := explain(err)
	t.condition = v1alpha1.ConditionOutputFetched
	if _, ok := errors.AsType[*noSpaceError](err); ok {
		t.reason = reasonNoSpace
	}
	t.message = "the output is not fetched yet: " + t.message
	return t
}

// batch is what one fetch is for.
type batch struct {
	run   ledger.Run
	procs []ledger.Proc
}

func (b batch) attempt() output.Attempt {
	return output.Attempt{Namespace: b.run.Namespace, Name: b.run.Name, Number: b.run.Attempt}
}

// of names some of its jobs to HTCondor.
func (b batch) of(numbers []int) schedd.Procs {
	return schedd.Procs{Tag: schedd.Tag{UID: b.run.UID, Attempt: b.run.Attempt}, Cluster: b.run.Cluster, Numbers: numbers}
}

// fetch fetches one batch for an HTCJob, of its newest run first, and returns whether there may be more. Without one it
// drops the output that has been replaced.
func (c *Controller) fetch(ctx context.Context, key string) (more bool, err error) {
	if err := c.releaseAgain(ctx, key); err != nil {
		return false, err
	}
	b, found, err := c.nextBatch(ctx, key)
	if err != nil || !found {
		return false, errors.Join(err, c.dropReplaced(ctx, key))
	}
	here, wanted, err := c.arrivedBefore(b)
	if err != nil {
		return false, err
	}
	if len(here) > 0 {
		return true, c.keep(ctx, b, "", here)
	}
	if err := c.space(); err != nil {
		return false, err
	}
	dir, err := c.Output.Begin(wanted)
	if err != nil {
		return false, placeError(fmt.Errorf("begin a fetch: %w", err))
	}
	defer os.RemoveAll(dir) // what stays is swept at the next start
	arrived, missing, err := c.transfer(ctx, b, wanted, dir)
	if err != nil {
		return c.spoil(ctx, b, err)
	}
	if len(arrived) > 0 {
		if err := output.Sync(dir); err != nil {
			return false, err
		}
		if err := c.keep(ctx, b, dir, arrived); err != nil {
			return false, err
		}
	}
	if len(missing) > 0 {
		return true, c.giveUpGone(ctx, b, missing)
	}
	return true, nil
}

// nextBatch finds what to fetch next. Jobs whose files could not be sent once come after the others, one by one.
func (c *Controller) nextBatch(ctx context.Context, key string) (b batch, found bool, err error) {
	runs, err := c.runsOf(ctx, key)
	if err != nil {
		return b, false, err
	}
	for i := len(runs) - 1; i >= 0; i-- {
		run := runs[i]
		if !c.fetchable(run) || run.UID != runs[len(runs)-1].UID {
			continue // an object that is gone shall keep nothing in the place of the one that has its name
		}
		var procs []ledger.Proc
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
			procs, err = tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Unfetched: true, Limit: 2 * fetchedAtOnce})
			return err
		})
		if err != nil {
			return b, false, err
		}
		if procs = c.spoiled.choose(run, procs); len(procs) > 0 {
			return batch{run, procs}, true, nil
		}
	}
	return b, false, nil
}

// arrivedBefore sorts out what is in its place already, and so whole: the ledger has been lost since, or the
// transaction that should have said so.
func (c *Controller) arrivedBefore(b batch) (here, wanted []int, err error) {
	for _, p := range b.procs {
		has, err := c.Output.Has(b.attempt(), p.Proc)
		switch {
		case err != nil:
			return nil, nil, err
		case has:
			here = append(here, p.Proc)
		default:
			wanted = append(wanted, p.Proc)
		}
	}
	return here, wanted, nil
}

// space looks whether there is some: the same volume holds the ledger.
func (c *Controller) space() error {
	free, err := c.Output.Free()
	if err == nil && free < c.KeepFree {
		err = &noSpaceError{fmt.Sprintf("the volume has %d MiB left, and %d MiB stay free (--keep-free): delete HTCJobs whose output is not needed any more, or have the volume enlarged",
			free>>20, c.KeepFree>>20)}
	}
	return err
}

// placeError tells a full volume from other trouble with it.
func placeError(err error) error {
	if err != nil && strings.Contains(err.Error(), "o space left on device") || ledger.IsUnavailable(err) && err != nil {
		return &noSpaceError{err.Error()}
	}
	return err
}

// transfer fetches and says what has come. Jobs may have been sent before the namespace had an account of its own: what
// is not that one's may be the common one's.
func (c *Controller) transfer(ctx context.Context, b batch, wanted []int, dir string) (arrived, missing []int, err error) {
	h := homeOf(b.run)
	id, err := c.identity(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	missing = wanted
	for _, as := range c.accounts(ctx, h, id) {
		if err := c.Schedd.Transfer(ctx, as, b.of(missing), dir); err != nil {
			return nil, nil, err
		}
		ask := missing
		missing = nil
		for _, proc := range ask {
			has, err := output.Arrived(dir, proc)
			switch {
			case err != nil:
				return nil, nil, err
			case has:
				arrived = append(arrived, proc)
			default:
				missing = append(missing, proc)
			}
		}
		if len(missing) == 0 {
			break
		}
	}
	return arrived, missing, nil
}

// accounts are those whose job it may be. Who named a Secret had its account from the beginning.
func (c *Controller) accounts(ctx context.Context, h home, id schedd.Identity) []schedd.Identity {
	common, err := c.Credentials.Common(ctx)
	common.Place = id.Place
	if err != nil || common == id || h.secret != "" {
		return []schedd.Identity{id}
	}
	return []schedd.Identity{id, common}
}

// spoil decides what a failed transfer means. Where the schedd cannot send the files of one job, the others are fetched
// without it, and it is given up in the end.
func (c *Controller) spoil(ctx context.Context, b batch, why error) (more bool, err error) {
	bad, ok := errors.AsType[*schedd.TransferError](why)
	// The tool's own trouble to write is not the job's fault.
	if !ok || strings.Contains(bad.Error(), "writing to file") {
		return false, placeError(fmt.Errorf("fetch: %w", why))
	}
	if c.spoiled.again(b.run, bad.Proc) < fetchTries {
		if len(b.procs) > 1 {
			return true, nil
		}
		return false, fmt.Errorf("fetch: %w", why)
	}
	return true, c.giveUp(ctx, b.run, []int{bad.Proc}, "the schedd cannot send the output: "+bad.Error())
}

// spoiled counts, for jobs whose files could not be sent, how often. It is kept in memory only. Safe for concurrent use.
type spoiled struct {
	mu sync.Mutex
	m  map[spoiledProc]int
}

type spoiledProc struct {
	uid           string
	attempt, proc int
}

func (s *spoiled) again(run ledger.Run, proc int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[spoiledProc]int{}
	}
	key := spoiledProc{run.UID, run.Attempt, proc}
	s.m[key]++
	return s.m[key]
}

// choose takes the procs of one fetch.
func (s *spoiled) choose(run ledger.Run, procs []ledger.Proc) []ledger.Proc {
	s.mu.Lock()
	defer s.mu.Unlock()
	var good, bad []ledger.Proc
	for _, p := range procs {
		if s.m[spoiledProc{run.UID, run.Attempt, p.Proc}] == 0 {
			good = append(good, p)
		} else {
			bad = append(bad, p)
		}
	}
	if len(good) > 0 {
		return good[:min(len(good), fetchedAtOnce)]
	}
	return bad[:min(len(bad), 1)]
}
