package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

const (
	// The end of a failed job's standard error that its status shows.
	stderrLines = 20
	stderrBytes = 2048
)

// errReplaced says that a run is not one whose output is wanted any more.
var errReplaced = errors.New("the HTCJob was deleted, or another took its name")

// keep puts what has arrived into its place and writes that down, in one transaction, then lets the jobs leave the queue.
// Without a directory of a fetch the output is in its place already. With lacks there is one
// job, and the files that it lacks are written down.
func (c *Controller) keep(ctx context.Context, b batch, dir string, arrived []int, lacks []string) error {
	from := dir
	if dir == "" {
		var err error
		if from, err = c.Output.AttemptDir(b.attempt()); err != nil {
			return err
		}
	}
	var bytes int64
	if dir != "" {
		bytes = output.Size(dir)
	}
	ends := map[int]string{}
	for _, p := range b.procs {
		if p.Status == ledger.StatusFailed {
			ends[p.Proc] = stderrEnd(filepath.Join(from, strconv.Itoa(p.Proc)))
		}
	}
	as, lack := ledger.IsFetched, ""
	if len(lacks) > 0 {
		as = ledger.Incomplete
		lack = lackMessage(fmt.Sprintf("%d.%d", b.run.Cluster, arrived[0]), lacks)
		ends[arrived[0]] = strings.TrimPrefix(ends[arrived[0]]+"\n("+lack+")", "\n")
	}
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := stillWanted(tx, b.run); err != nil {
			return err
		}
		if dir != "" {
			if err := c.Output.Keep(dir, b.attempt(), arrived...); err != nil {
				return placeError(err)
			}
		}
		return markFetched(tx, b.run, arrived, as, func(proc int) string { return ends[proc] })
	})
	if errors.Is(err, errReplaced) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	if lack != "" {
		c.Log.Warn().Str("job", b.run.Namespace+"/"+b.run.Name).Msg(lack)
		if job := c.get(b.run.Namespace + "/" + b.run.Name); job != nil {
			c.Events.Warning(job, reasonIncomplete, lack)
		}
	}
	c.Log.Debug().Str("job", b.run.Namespace+"/"+b.run.Name).Int("cluster", b.run.Cluster).Int("procs", len(arrived)).Msg("output fetched")
	c.Observer.fetched(len(arrived), bytes)
	c.failing.done(b.run, arrived)
	return c.release(ctx, b.run, arrived)
}

// maxLacks is how many missing files are named.
const maxLacks = 5

// lackMessage names files that HTCondor did not keep of one job.
func lackMessage(job string, lacks []string) string {
	var names []string
	for _, name := range lacks[:min(len(lacks), maxLacks)] {
		names = append(names, fmt.Sprintf("%.100q", name))
	}
	if more := len(lacks) - maxLacks; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("of the output of job %s HTCondor did not keep %s", job, strings.Join(names, ", "))
}

// stillWanted looks whether a run is one of the HTCJob that has the name now. Who is begun later under the same name has
// its first attempt where the older one had its own.
func stillWanted(tx *ledger.Tx, run ledger.Run) error {
	runs, err := tx.Runs(ledger.RunFilter{Namespace: run.Namespace, Name: run.Name})
	if err != nil {
		return err
	}
	wanted := false
	for _, r := range runs {
		if r.UID == run.UID && r.Attempt == run.Attempt {
			wanted = true
		}
	}
	if !wanted || runs[len(runs)-1].UID != run.UID {
		return errReplaced
	}
	return nil
}

// markFetched writes what became of the output of some procs.
func markFetched(tx *ledger.Tx, run ledger.Run, procs []int, as ledger.Fetched, end func(proc int) string) error {
	for _, proc := range procs {
		p, err := tx.Proc(run.UID, run.Attempt, proc)
		if err != nil {
			return err
		}
		p.Fetched, p.Stderr = as, end(proc)
		if err := tx.UpdateProc(p); err != nil {
			return err
		}
	}
	return nil
}

// stderrEnd reads the end of a standard error. What cannot be read is not shown.
func stderrEnd(dir string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	f, err := output.Regular(root, output.Stderr)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := output.Tail(f, stderrLines, stderrBytes)
	if err != nil {
		return ""
	}
	return text
}

// release lets jobs leave the queue. What does not succeed is done when the HTCJob's turn comes again.
func (c *Controller) release(ctx context.Context, run ledger.Run, procs []int) error {
	b := batch{run: run}
	t := backend.TargetOf(run)
	id, err := c.Credentials.Identity(ctx, t)
	if err == nil {
		for _, as := range backend.Senders(ctx, c.Credentials, t, id) {
			err = errors.Join(err, c.Schedd.Release(ctx, as, b.of(procs)))
		}
	}
	if err != nil {
		c.unreleased.add(run, procs)
		return fmt.Errorf("let fetched jobs leave the queue: %w", err)
	}
	return nil
}

// releaseAgain does what an earlier release did not achieve.
func (c *Controller) releaseAgain(ctx context.Context, key string) error {
	var errs []error
	for _, left := range c.unreleased.take(key) {
		errs = append(errs, c.release(ctx, left.run, left.procs))
	}
	return errors.Join(errs...)
}

// giveUpGone gives up the output of jobs that have left the queue. Those that are there still are somebody else's, or
// run again.
func (c *Controller) giveUpGone(ctx context.Context, b batch, missing []int) error {
	id, err := c.questioner(ctx, backend.TargetOf(b.run))
	if err != nil {
		return err
	}
	queued := map[int]schedd.Job{}
	err = c.Schedd.Queue(ctx, id, b.of(nil).Tag.Constraint(), func(j schedd.Job) error {
		if j.Cluster == b.run.Cluster {
			queued[j.Proc] = j
		}
		return nil
	})
	if err != nil {
		return err
	}
	var gone []int
	var others []schedd.Job
	again := false
	for _, proc := range missing {
		switch j, there := queued[proc]; {
		case !there:
			gone = append(gone, proc)
		case j.Status == schedd.Completed:
			others = append(others, j)
		default:
			again = true
		}
	}
	if err := c.giveUp(ctx, b.run, gone, "the job left the queue before its output was fetched"); err != nil {
		return err
	}
	if again {
		c.checks.Add(b.run.UID)
		return errors.New("a job that had completed is in the queue again, and is asked about")
	}
	if len(others) == 0 {
		return nil
	}
	return backend.OtherAccount(fmt.Sprintf("%s of the account %s, such as %s, cannot be fetched from with the credentials of namespace %s",
		plural(len(others), "job"), others[0].Owner, others[0].ID(), b.run.Namespace))
}

// giveUp writes down that the output of some procs cannot be had, and lets their jobs go.
func (c *Controller) giveUp(ctx context.Context, run ledger.Run, procs []int, why string) error {
	if len(procs) == 0 {
		return nil
	}
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		return markFetched(tx, run, procs, ledger.GivenUp, func(int) string { return "(no output: " + why + ")" })
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("give up output: %w", err)
	}
	c.Observer.gaveUp(len(procs))
	c.failing.done(run, procs)
	c.Log.Warn().Str("job", run.Namespace+"/"+run.Name).Int("cluster", run.Cluster).Ints("procs", procs).Msg("output given up: " + why)
	if job := c.get(run.Namespace + "/" + run.Name); job != nil {
		c.Events.Warning(job, reasonGivenUp, fmt.Sprintf("the output of %s cannot be had: %s", plural(len(procs), "job"), why))
	}
	return c.release(ctx, run, procs)
}

// dropReplaced drops the output of earlier attempts once the newest has ended and its own is here.
func (c *Controller) dropReplaced(ctx context.Context, key string) error {
	runs, err := c.runsOf(ctx, key)
	if err != nil || len(runs) == 0 {
		return err
	}
	newest := runs[len(runs)-1]
	if !c.fetchable(newest) || newest.State != ledger.Submitted || !newest.Confirmed {
		return nil
	}
	var counts ledger.OutputCounts
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		counts, err = tx.Output(newest.UID, newest.Attempt)
		return err
	})
	if err != nil || counts.Waiting > 0 || counts.Completed == counts.GivenUp {
		return err
	}
	attempts, err := c.Output.Attempts(newest.Namespace, newest.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dropped := false
	for _, a := range attempts {
		if a.Number < newest.Attempt {
			dropped = true
			err = errors.Join(err, c.Output.DropAttempt(a))
		}
	}
	if !dropped {
		return nil
	}
	return errors.Join(err, c.Output.Sweep(false))
}

// emptyOutput makes the place of an attempt's output empty before it is sent: an object of the same name that is gone may
// have had the same attempt. Its fetches keep nothing there any more, since the intent of this one is in the ledger.
func (c *Controller) emptyOutput(run ledger.Run) error {
	if !c.fetchable(run) {
		return nil
	}
	if run.Attempt == 1 {
		return c.Output.Drop(run.Namespace, run.Name)
	}
	return c.Output.DropAttempt(output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt})
}

// dropOutput is for the transaction that drops the rows of an HTCJob. What stands there may be that of a younger one of
// the same name.
func (c *Controller) dropOutput(tx *ledger.Tx, namespace, name, uid string) error {
	if c.Output.Root == "" {
		return nil
	}
	runs, err := tx.Runs(ledger.RunFilter{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.UID != uid {
			return nil
		}
	}
	return c.Output.Drop(namespace, name)
}

// unreleased remembers jobs that could not be released, by the key of their HTCJob. Safe for concurrent use.
type unreleased struct {
	mu sync.Mutex
	m  map[string][]fetchedProcs
}

type fetchedProcs struct {
	run   ledger.Run
	procs []int
}

func (u *unreleased) add(run ledger.Run, procs []int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.m == nil {
		u.m = map[string][]fetchedProcs{}
	}
	key := run.Namespace + "/" + run.Name
	u.m[key] = append(u.m[key], fetchedProcs{run, procs})
}

func (u *unreleased) take(key string) []fetchedProcs {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := u.m[key]
	delete(u.m, key)
	return left
}
