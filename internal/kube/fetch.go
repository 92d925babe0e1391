package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"htc.cern.ch/htcd/internal/backend"
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
// resumeWaiting.
//
// A fetch is for a number of procs of one run. Its keys have a queue and workers of their own, so that nothing waits for
// it, and namespaces take turns.

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
	c.Observer.fetchFailed(t.reason)
	if c.unfetched.set(key, t) {
		c.Log.Warn().Err(err).Str("job", key).Str("reason", t.reason).Msg("output not fetched yet")
		if job := c.get(key); job != nil {
			c.Events.Warning(job, t.reason, t.message)
		}
	}
	if paused, ok := errors.AsType[*pausedError](err); ok {
		c.fetches.Forget(key)
		c.fetches.AddAfter(key, paused.until.Sub(c.Now()))
		return
	}
	c.fetches.AddRateLimited(key)
}

// fetchNow ends the back-off of every fetch.
func (c *Controller) fetchNow() {
	for key := range c.unfetched.with(func(blocker) bool { return true }) {
		c.fetches.Forget(key)
		c.fetches.Add(key)
	}
}

// explainFetch is explain for what is in the way of a fetch.
func explainFetch(err error) blocker {
	t := explain(err)
	t.condition = v1alpha1.ConditionOutputFetched
	if _, ok := errors.AsType[*output.NoSpaceError](err); ok {
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
		return true, c.keep(ctx, b, "", here, nil)
	}
	fit, release, err := c.book(ctx, b, wanted)
	if err != nil {
		return false, err
	}
	defer release()
	dir, err := c.Output.Begin(fit)
	if err != nil {
		return false, placeError(fmt.Errorf("begin a fetch: %w", err))
	}
	defer os.RemoveAll(dir) // what stays is swept at the next start
	var arrived, missing []int
	err = c.guarded(ctx, func(ctx context.Context) (err error) {
		arrived, missing, err = c.transfer(ctx, b, fit, dir)
		return err
	})
	if err != nil {
		return c.spoil(ctx, b, fit, dir, err)
	}
	if err := c.take(ctx, b, dir, arrived, nil); err != nil {
		return false, err
	}
	if len(missing) > 0 {
		return true, c.giveUpGone(ctx, b, missing)
	}
	return true, nil
}

// take keeps what a fetch has brought into its directory; lacks are the files that HTCondor did not keep of the one job it was for.
func (c *Controller) take(ctx context.Context, b batch, dir string, arrived []int, lacks []string) error {
	if len(arrived) == 0 {
		return nil
	}
	for _, proc := range arrived {
		if err := output.RestoreNames(dir, proc); err != nil {
			return placeError(err)
		}
	}
	if err := output.Sync(dir); err != nil {
		return err
	}
	return c.keep(ctx, b, dir, arrived, lacks)
}

// nextBatch finds what to fetch next. Jobs whose files could not be sent once come after the others, one by one, each when
// its pause is over: until then there is a pausedError.
func (c *Controller) nextBatch(ctx context.Context, key string) (b batch, found bool, err error) {
	runs, err := c.runsOf(ctx, key)
	if err != nil {
		return b, false, err
	}
	var next *failing
	for i := len(runs) - 1; i >= 0; i-- {
		run := runs[i]
		if !c.fetchable(run) || run.UID != runs[len(runs)-1].UID {
			continue // an object that is gone shall keep nothing in the place of the one that has its name
		}
		procs, paused, err := c.nextOf(ctx, run)
		if err != nil {
			return b, false, err
		}
		if len(procs) > 0 {
			return batch{run, procs}, true, nil
		}
		if paused != nil && (next == nil || paused.next.Before(next.next)) {
			next = paused
		}
	}
	if next != nil {
		return b, false, &pausedError{next.next, next.err}
	}
	c.failing.forget(key)
	return b, false, nil
}

// nextOf takes the next procs of a run, or says which of them comes next.
func (c *Controller) nextOf(ctx context.Context, run ledger.Run) (chosen []ledger.Proc, next *failing, err error) {
	for from := 0; ; {
		var page []ledger.Proc
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
			page, err = tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Unfetched: true, From: from, Limit: 2 * fetchedAtOnce})
			return err
		})
		if err != nil || len(page) == 0 {
			return nil, next, err
		}
		procs, paused := c.failing.choose(run, page, c.Now())
		if len(procs) > 0 {
			return procs, nil, nil
		}
		if next == nil || paused.next.Before(next.next) {
			next = paused
		}
		from = page[len(page)-1].Proc + 1
	}
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

// placeError tells a full volume from other trouble with it.
func placeError(err error) error {
	if err != nil && (output.Full(err) || ledger.IsUnavailable(err)) {
		return &output.NoSpaceError{Message: err.Error()}
	}
	return err
}

// transfer fetches and says what has come. Jobs may have been sent before the namespace had an account of its own: what
// is not that one's may be the common one's.
func (c *Controller) transfer(ctx context.Context, b batch, wanted []int, dir string) (arrived, missing []int, err error) {
	t := backend.TargetOf(b.run)
	id, err := c.Credentials.Identity(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	missing = wanted
	for _, as := range backend.Senders(ctx, c.Credentials, t, id) {
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

// spoil decides what a failed transfer means. A job whose files the schedd fails to send does not hold up the others: it
// is asked for again after growing pauses, and stays in the queue. Only what the schedd says it does not have is given
// up: after hours, or where all else of the job comes each time, after minutes.
func (c *Controller) spoil(ctx context.Context, b batch, asked []int, dir string, why error) (more bool, err error) {
	key := b.run.Namespace + "/" + b.run.Name
	why = placeError(why)
	if _, full := errors.AsType[*output.NoSpaceError](why); full {
		c.failing.smaller(key, len(asked))
		return false, why
	}
	bad, named := errors.AsType[*schedd.TransferError](why)
	proc := -1
	switch kind := schedd.KindOf(why); {
	case named && strings.Contains(bad.Error(), "writing to file"): // the tool's own trouble, not the job's
	case named:
		proc = bad.Proc
	case kind != schedd.Unknown && kind != schedd.Timeout:
	case len(asked) > 1: // one of them may be the reason, or there are too many of them
		c.failing.smaller(key, len(asked))
	case kind == schedd.Unknown:
		proc = asked[0]
	}
	if proc < 0 {
		return false, fmt.Errorf("fetch: %w", why)
	}
	now := c.Now()
	f := c.failing.failed(b.run, proc, why, now)
	switch waited := now.Sub(f.since); {
	case named && len(bad.Lacks) > 0 && waited >= goWithoutAfter:
		return true, c.take(ctx, b, dir, []int{proc}, bad.Lacks)
	case named && bad.Gone() && waited >= giveUpAfter:
		return true, c.giveUp(ctx, b.run, []int{proc}, goneMessage(bad))
	}
	return true, nil
}

// goneMessage says which file the schedd does not have.
func goneMessage(bad *schedd.TransferError) string {
	file := bad.Missing()
	if file == "" {
		return "the schedd does not have the output any more: " + bad.Error()
	}
	return fmt.Sprintf("the schedd has no file %q, which is part of it: %s", filepath.Base(file), bad)
}
