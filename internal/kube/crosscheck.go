package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// reasonStuck is what htcd itself gives as the reason when it removes a cluster that was never completely spooled.
const reasonStuck = "htcd: never completely spooled"

// Crosscheck is one pass: it compares every run on which HTCondor has not said the last word with its schedd's queue,
// and what left the queue with the history, and repairs the ledger. An error changes nothing of what it is about.
func (c *Controller) Crosscheck(ctx context.Context) error {
	err := c.each(ctx, crosschecking, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		began := c.Now()
		newest, err := c.newestHistory(ctx, id)
		if err != nil {
			return err
		}
		if err := c.check(ctx, id, g.Runs, pass{history: true, since: c.passes.mark(g.Target)}); err != nil {
			return err
		}
		c.passes.setMark(g.Target, mark{newest, began})
		return nil
	})
	err = errors.Join(err, c.watchOrphans(ctx))
	if !c.resumed.Swap(true) {
		if again := c.resumeWaiting(ctx); again != nil {
			c.resumed.Store(false)
			err = errors.Join(err, again)
		}
	}
	return err
}

// Refresh asks the queues alone, so that what is idle, running or held is known between two cross-checks. It judges
// nothing by its absence.
func (c *Controller) Refresh(ctx context.Context) error {
	return c.each(ctx, refreshing, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		return c.check(ctx, id, g.Runs, pass{})
	})
}

// each asks all groups of the unconfirmed runs at once, so that none waits for another's schedd.
func (c *Controller) each(ctx context.Context, kind string, ask func(context.Context, schedd.Identity, backend.Group) error) error {
	var runs []ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.Runs(ledger.RunFilter{State: ledger.Submitted, Unconfirmed: true})
		return err
	})
	if err != nil {
		return err
	}
	all := backend.Groups(runs)
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, g := range all {
		end, may := c.passes.begin(kind, g.Target, c.Now)
		if !may {
			continue
		}
		group.Go(func() {
			defer end()
			began := c.Now()
			id, err := c.questioner(ctx, g.Target)
			if err == nil {
				err = ask(ctx, id, g)
			}
			if ctx.Err() == nil { // else it was htcd that broke it off
				c.Told.passed(kind, g.Place, c.Now().Sub(began), err)
			}
			if err != nil {
				errs[i] = fmt.Errorf("schedd %s: %w", g.Place, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// checkSome asks about the runs that callbacks hinted at, all those of one account with one question. HTCondor needs a moment
// from the callback to the end in its queue, so it asks a few times; then the cron schedule takes over.
func (c *Controller) checkSome(ctx context.Context, uids []string) {
	var runs []ledger.Run
	for _, uid := range uids {
		run, over, err := c.latestOpen(ctx, uid)
		if err != nil {
			c.Log.Warn().Err(err).Str("uid", uid).Msg("check after a callback")
		}
		if over || c.checks.NumRequeues(uid) >= 3 {
			c.checks.Forget(uid)
		} else {
			c.checks.AddRateLimited(uid)
		}
		if !over && err == nil {
			runs = append(runs, run)
		}
	}
	for _, g := range backend.Groups(runs) {
		if err := c.checkGroup(ctx, g); err != nil {
			c.Log.Warn().Err(err).Int("runs", len(g.Runs)).Msg("check after a callback")
		}
	}
}

// checkRun asks about the newest run of an HTCJob, unless HTCondor has said the last word on it.
func (c *Controller) checkRun(ctx context.Context, uid string) (over bool, err error) {
	run, over, err := c.latestOpen(ctx, uid)
	if over || err != nil {
		return over, err
	}
	return false, c.checkGroup(ctx, backend.Groups([]ledger.Run{run})[0])
}

// checkGroup asks about runs of one account at one place.
func (c *Controller) checkGroup(ctx context.Context, g backend.Group) error {
	id, err := c.questioner(ctx, g.Target)
	if err != nil {
		return err
	}
	return c.check(ctx, id, g.Runs, pass{history: true, since: c.passes.mark(g.Target)})
}

// latestOpen is the newest run of an HTCJob; it is over when HTCondor has said the last word on it, or it is gone.
func (c *Controller) latestOpen(ctx context.Context, uid string) (run ledger.Run, over bool, err error) {
	run, err = c.latest(ctx, uid)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && (run.State != ledger.Submitted || run.Confirmed) {
		return run, true, nil
	}
	return run, false, err
}

// latest is the newest run of an HTCJob.
func (c *Controller) latest(ctx context.Context, uid string) (run ledger.Run, err error) {
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		run, err = tx.LatestRun(uid)
		return err
	})
	return run, err
}

// checking is one run during a pass.
type checking struct {
	run      ledger.Run
	open     map[int]ledger.Proc      // not seen yet in this pass
	steady   map[int]schedd.JobStatus // not seen yet, either: open, in that state when last seen, and nothing else to tell
	said     map[int]observation
	unread   []string // jobs whose ads cannot be had or read: there, and nothing more is known
	still    bool     // HTCondor has some proc as it was, and open
	neverRan bool     // its files never arrived, and it has left the queue
	stuck    bool     // its files will never arrive, and it waits in the queue
	applied  bool     // what was said is being written, or is
}

func (k *checking) unseen() int { return len(k.open) + len(k.steady) }

// quiet tells whether nothing is to be written but that HTCondor was asked.
func (k *checking) quiet() bool {
	return k.still && len(k.said) == 0 && !k.neverRan && !k.stuck && !k.run.Confirmed && k.run.Ended.IsZero()
}

// pass says how far a check goes.
type pass struct {
	history bool // ask the history about what the queue does not show
	since   mark // bounds the history for runs that were in the queue at that mark

	// What Reconcile adds.
	all   bool             // look also at jobs on which HTCondor has said the last word
	dry   bool             // change nothing, not even what is remembered of the schedd
	found func(Difference) // hears of what differed; nil: nobody asks
}

// plain tells that the pass is to write what it finds, in no order, and that is all.
func (p pass) plain() bool { return !p.all && !p.dry && p.found == nil }

// runKey names a run by what its ads carry. A cluster id alone comes again when a schedd is set up anew.
type runKey struct {
	cluster int
	uid     string
	attempt int
}

func keyOf(run ledger.Run) runKey { return runKey{run.Cluster, run.UID, run.Attempt} }

// check asks queue, then history, about runs, and applies what they say.
func (c *Controller) check(ctx context.Context, id schedd.Identity, runs []ledger.Run, how pass) error {
	at := c.Now()
	checked, err := c.askQueue(ctx, id, runs, how, at)
	if err != nil {
		return err
	}
	var gone []int
	bound := schedd.HistoryBounds{Since: how.since.newest}
	for _, k := range checked {
		if k.unseen() == 0 {
			continue
		}
		gone = append(gone, k.run.Cluster)
		if !k.sinceMark(how.since) {
			bound.Since = ""
		}
	}
	if how.history && len(gone) > 0 {
		var group errgroup.Group
		group.SetLimit(atOnce)
		err := c.to(how).History(ctx, id, constraint(gone), bound, func(j schedd.Job) error {
			if unjudged(checked, j, how) {
				return schedd.ErrReasons
			}
			// What it tells holds whatever comes after it, and is written while the schedd reads on.
			if k := take(checked, j, at, "condor_history", how); k != nil && k.unseen() == 0 && how.plain() && !k.quiet() && !k.stuck {
				k.applied = true
				group.Go(func() error { return c.apply(ctx, k, at, how) })
			}
			return nil
		})
		if err != nil {
			err = fmt.Errorf("cross-check history: %w", err)
		}
		err = errors.Join(err, group.Wait())
		for _, k := range checked {
			if k.applied { // statuses come after it: they would take the CPU that the schedd needs to answer
				c.look(k.run)
			}
		}
		if err != nil {
			return err
		}
	}
	return c.conclude(ctx, runs, checked, at, how)
}

// askQueue compares the queue with the procs to ask about. These are read while condor_q gathers its answer.
func (c *Controller) askQueue(ctx context.Context, id schedd.Identity, runs []ledger.Run, how pass, at time.Time) (checked map[runKey]*checking, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	opened := make(chan error, 1)
	read := func() error {
		checked, err = c.open(ctx, runs, how)
		return err
	}
	if how.all { // what a row said before HTCondor was asked decides
		opened <- read()
	} else {
		go func() { opened <- read() }()
	}
	wait := sync.OnceValue(func() error { return <-opened })
	hear := func(j schedd.Job) error {
		if err := wait(); err != nil {
			return err
		}
		if unjudged(checked, j, how) {
			return schedd.ErrReasons
		}
		take(checked, j, at, "condor_q", how)
		return nil
	}
	var asked error
	for _, some := range questions(runs) {
		if asked = c.to(how).Queue(ctx, id, some, hear); asked != nil {
			break
		}
	}
	if err := wait(); err != nil {
		return nil, err
	}
	if asked != nil {
		return nil, fmt.Errorf("cross-check queue: %w", asked)
	}
	return checked, nil
}

// conclude applies what was found about runs.
func (c *Controller) conclude(ctx context.Context, runs []ledger.Run, checked map[runKey]*checking, at time.Time, how pass) error {
	var quiet []*checking
	var group errgroup.Group
	group.SetLimit(atOnce)
	if how.found != nil {
		group.SetLimit(1) // in order
	}
	for _, run := range runs {
		k := checked[keyOf(run)]
		c.tellUnread(k)
		if k.applied {
			continue
		}
		if k.stuck && !how.dry {
			if err := c.removeStuck(ctx, run); err != nil {
				return errors.Join(fmt.Errorf("remove cluster %d: %w", run.Cluster, err), group.Wait())
			}
		}
		if how.history {
			k.miss(at)
		}
		if k.quiet() && !how.all && !how.dry {
			quiet = append(quiet, k)
			continue
		}
		group.Go(func() error {
			if !how.dry && !(how.all && run.Confirmed && len(k.said) == 0) {
				defer c.look(k.run)
				if err := c.apply(ctx, k, at, how); err != nil {
					return err
				}
			}
			if how.found != nil {
				k.tell(how)
			}
			return nil
		})
	}
	return errors.Join(group.Wait(), c.applyQuiet(ctx, quiet, at, how))
}

// atOnce is how many runs are written at once: they share the ledger's commits.
const atOnce = 64

// betweenChecks is how often it is written down, in the ledger and in the status, that HTCondor was asked and had nothing
// new. A cross-check is written in the ledger every time, since the history is read from there on.
const betweenChecks = 50 * time.Second

// applyQuiet takes note that HTCondor was asked about runs of which nothing has changed.
func (c *Controller) applyQuiet(ctx context.Context, quiet []*checking, at time.Time, how pass) error {
	quiet = slices.DeleteFunc(quiet, func(k *checking) bool { return !how.history && at.Sub(k.run.Checked) < betweenChecks })
	for page := range slices.Chunk(quiet, pageSize) {
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			for _, k := range page {
				k.run.Checked = at
				if err := tx.SetChecked(k.run); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("record cross-check: %w", err)
		}
		for _, k := range page {
			c.routine.Add(k.run.Namespace + "/" + k.run.Name)
		}
	}
	return nil
}

// removeStuck removes a cluster that will never be completely spooled. One namespace whose credentials do not work must
// not keep the others from being checked.
func (c *Controller) removeStuck(ctx context.Context, run ledger.Run) error {
	tag := schedd.Tag{UID: run.UID, Attempt: run.Attempt}
	_, err := c.remove(ctx, backend.TargetOf(run), schedd.In(run.Cluster, tag.Constraint()), reasonStuck)
	if err == nil {
		c.Told.repaired(HalfSpooled)
	}
	if _, ok := errors.AsType[*CredentialError](err); ok {
		c.Log.Warn().Err(err).Str("job", run.Namespace+"/"+run.Name).Msg("a half-spooled cluster cannot be removed")
		return nil
	}
	return err
}

// miss takes note of the procs that neither queue nor history showed.
func (k *checking) miss(at time.Time) {
	o := observation{source: fromCrosscheck, at: at, absent: true, stop: k.run.Stop, evidence: noTrace}
	for proc, p := range k.open {
		if _, changed := transition(p, o); changed {
			k.said[proc] = o
		}
	}
	for proc := range k.steady {
		k.said[proc] = o
	}
}

// open reads the procs to ask about: usually those on which HTCondor has not said the last word.
func (c *Controller) open(ctx context.Context, runs []ledger.Run, how pass) (map[runKey]*checking, error) {
	checked := make(map[runKey]*checking, len(runs))
	for _, run := range runs {
		checked[keyOf(run)] = &checking{run: run, open: map[int]ledger.Proc{}, said: map[int]observation{}}
	}
	for i, steady, from := 0, !how.all, 0; i < len(runs); {
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
			for left := pageSize; left > 0 && i < len(runs); {
				k := checked[keyOf(runs[i])]
				read, next, err := k.read(tx, how, steady, from, left)
				if err != nil {
					return err
				}
				switch {
				case read == left: // there may be more of them
					from = next
				case steady:
					steady, from = false, 0
				default:
					i, steady, from = i+1, !how.all, 0
				}
				left -= max(read, 10) // a question has its price, too
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return checked, nil
}

// read adds a page of the run's procs, the steady ones or the others, and returns how many and where to go on.
func (k *checking) read(tx *ledger.Tx, how pass, steady bool, from, limit int) (read, next int, err error) {
	if steady {
		err := tx.Steady(k.run.UID, k.run.Attempt, from, limit, func(proc, jobStatus int) {
			if k.steady == nil {
				k.steady = make(map[int]schedd.JobStatus, min(k.run.Procs, limit))
			}
			k.steady[proc] = schedd.JobStatus(jobStatus)
			read, next = read+1, proc+1
		})
		return read, next, err
	}
	page, err := tx.Procs(k.run.UID, k.run.Attempt, ledger.ProcFilter{Unconfirmed: !how.all, Unsteady: !how.all, From: from, Limit: limit})
	for _, p := range page {
		k.open[p.Proc] = p
		next = p.Proc + 1
	}
	return len(page), next, err
}

// pageSize is how many rows one transaction reads or writes at most, so that callbacks do not wait long for it.
const pageSize = 1000

// take hands one ad, which tool showed, to the run it belongs to, and returns that; nil when nobody asked about it.
func take(checked map[runKey]*checking, j schedd.Job, at time.Time, tool string, how pass) *checking {
	k := checked[runKey{j.Cluster, j.Tag.UID, j.Tag.Attempt}]
	if k == nil {
		return nil
	}
	p, wanted := k.open[j.Proc]
	was, steady := k.steady[j.Proc]
	if !wanted && !steady {
		return nil
	}
	delete(k.open, j.Proc)
	delete(k.steady, j.Proc)
	switch {
	case j.Unread:
		k.unread, k.still = append(k.unread, j.ID()), true
	case neverRan(j):
		k.neverRan = true
	case j.Spooling() && !j.Spooled() && at.Sub(time.Unix(j.QDate, 0)) > spoolTime(k.run.Procs):
		k.stuck = true
	default:
		o := observed(j, at)
		if !j.Reasoned && o.hold != "" {
			o.hold = p.Message // as it was: see unjudged
		}
		if how.all {
			o.read = &p
		}
		same := steady && o.asBefore(was)
		if !steady {
			_, changed := transition(p, o)
			same = !changed
		}
		if !same {
			o.evidence = evidence(tool, j)
			k.said[j.Proc] = o
		} else if steady {
			k.still = true
		}
	}
	return k
}

// sinceMark tells whether whatever left the queue of this run left it after the mark: it was asked about since, or sent since.
func (k *checking) sinceMark(m mark) bool {
	for _, p := range k.open {
		if p.Absent > 0 {
			return false
		}
	}
	return !k.run.Checked.Before(m.at) || k.run.Submitted.After(m.at)
}

// look has an HTCJob's status written anew.
func (c *Controller) look(run ledger.Run) { c.queue.Add(run.Namespace + "/" + run.Name) }

// apply writes what was found about one run into the ledger.
func (c *Controller) apply(ctx context.Context, k *checking, at time.Time, how pass) error {
	uid, attempt := k.run.UID, k.run.Attempt
	if k.neverRan {
		c.Log.Warn().Str("job", k.run.Namespace+"/"+k.run.Name).Int("cluster", k.run.Cluster).Msg("the schedd lost its files before they arrived; sending it as a new attempt")
		c.Told.repaired(Unstaged)
		return c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			run, err := tx.Run(uid, attempt)
			if err != nil {
				return err
			}
			run.State, run.Reason, run.Message = ledger.Removed, "StagingFailed", "the schedd never got its files"
			run.Ended, run.Checked, run.Confirmed = at, at, true
			return tx.UpdateRun(run)
		})
	}
	procs := slices.Sorted(maps.Keys(k.said))
	pages := slices.Collect(slices.Chunk(procs, pageSize))
	if len(pages) == 0 {
		pages = [][]int{nil}
	}
	for i, page := range pages {
		said := make(map[int]observation, len(page))
		for _, proc := range page {
			said[proc] = k.said[proc]
		}
		var changes []change
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
			changes, err = observe(tx, uid, attempt, said, at, i == len(pages)-1)
			return err
		})
		if errors.Is(err, ledger.ErrNotFound) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return fmt.Errorf("record cross-check: %w", err)
		}
		c.tellRepairs(k.run, changes)
		if len(changes) > 0 && c.fetchable(k.run) {
			c.fetches.Add(k.run.Namespace + "/" + k.run.Name)
		}
		if how.found != nil {
			for _, r := range changes {
				tellChange(r, said[r.is.Proc], true, how.found)
			}
		}
	}
	return nil
}

// tellRepairs tells of every proc whose end, or its undoing, only the cross-check brought to light.
func (c *Controller) tellRepairs(run ledger.Run, changes []change) {
	for _, r := range changes {
		if kind, ok := repairOf(run, r); ok {
			c.Told.repaired(kind)
			c.Log.Info().Str("job", r.is.Namespace+"/"+r.is.Name).Str("jobid", r.is.JobID()).
				Int("was", int(r.was.Status)).Int("is", int(r.is.Status)).Str("kind", string(kind)).Str("evidence", r.is.Message).Msg("repaired")
		}
	}
}

// newestHistory returns the id of the job that left the queue last, "" when none ever did.
func (c *Controller) newestHistory(ctx context.Context, id schedd.Identity) (string, error) {
	var newest string
	err := c.Schedd.History(ctx, id, "true", schedd.HistoryBounds{Limit: 1}, func(j schedd.Job) error {
		newest = j.ID()
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cross-check history: %w", err)
	}
	return newest, nil
}
