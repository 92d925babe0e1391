package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

func attemptOf(w *v1alpha1.HTCWorkflow, number int) output.Attempt {
	return output.Attempt{Namespace: w.Namespace, Name: w.Name, Number: number}
}

// storedAs returns where the output of a DAG's nodes is in the store: with that of the first DAG of its attempt.
func storedAs(run ledger.Run) (output.Attempt, error) {
	number, err := strconv.Atoi(filepath.Base(run.OutputDir))
	return output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: number}, err
}

// owesOutput reports whether the output of a DAG's nodes is still in HTCondor.
func (c *Controller) owesOutput(d DAG) bool {
	return c.Output.Root != "" && d.Run.OutputDir != "" && d.Run.State == ledger.Submitted && d.Job != nil &&
		d.Job.Fetched == ledger.NotFetched
}

// fetchOne fetches the output of a workflow's DAGs that have ended, with a back-off.
func (c *Controller) fetchOne(ctx context.Context, key string) {
	err := c.fetch(ctx, key)
	if err == nil {
		c.fetches.Forget(key)
		c.Memory.Change(key, func(r *record) { r.Blockers[reconciler.Fetching], r.Kind.took = nil, output.Room{} })
		c.Changed.Add(key)
		return
	}
	b := reconciler.Explain(err)
	b.Condition, b.Message = v1alpha1.ConditionOutputFetched, "the output is not fetched yet: "+b.Message
	c.Observer.NodeFetchFailed(b.Reason)
	c.Report(key, reconciler.Fetching, b, err, "output not fetched yet")
	c.fetches.AddRateLimited(key)
}

// LedgerBack continues with what waits for a ledger that can be written again, fetches included.
func (c *Controller) LedgerBack() {
	c.RetryAll(reconciler.NeedsLedger)
	for key := range c.Memory.Blocked(reconciler.Fetching, reconciler.NeedsLedger) {
		c.fetches.Forget(key)
		c.fetches.Add(key)
	}
}

func (c *Controller) fetch(ctx context.Context, key string) error {
	w := c.Get(key)
	if w == nil || w.DeletionTimestamp != nil {
		return nil
	}
	runs, err := c.Runs(ctx, key)
	if err != nil {
		return err
	}
	var failed error
	for _, run := range runs {
		if run.UID != string(w.UID) || run.State != ledger.Submitted {
			continue
		}
		over, err := c.isSettled(ctx, run)
		if err != nil {
			return err
		}
		d, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (DAG, error) {
			return gatherDAG(tx, run)
		})
		if err != nil {
			return err
		}
		if !over {
			return cmp.Or(failed, c.fetchSome(ctx, key, d))
		}
		if !c.owesOutput(d) {
			continue
		}
		err = c.fetchDAG(ctx, w, run)
		if _, own := errors.AsType[*schedd.TransferError](err); err != nil && !own {
			return cmp.Or(failed, err)
		}
		failed = cmp.Or(failed, err) // what the schedd cannot bring of one DAG, it can of the next
	}
	if failed != nil {
		return failed
	}
	s, err := c.gather(ctx, w)
	if err != nil {
		return err
	}
	return c.dropReplaced(s)
}

// fetchDAG brings the output of a DAG's nodes into the store, lets DAGMan's job leave the queue, and records only then
// that nothing is left to fetch. Whatever is interrupted is done again; what has arrived is not fetched again.
func (c *Controller) fetchDAG(ctx context.Context, w *v1alpha1.HTCWorkflow, run ledger.Run) error {
	as, err := c.fetchAll(ctx, w, run)
	if err != nil {
		return err
	}
	if err := c.release(ctx, run); err != nil {
		return err
	}
	return c.recordFetched(ctx, run, as)
}

// fetchAll fetches the output of all nodes that have not been fetched one by one, and records which nodes are here.
func (c *Controller) fetchAll(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	run ledger.Run,
) (as ledger.Fetched, err error) {
	if run.Restored {
		if err := c.foundHere(ctx, w, run); err != nil {
			return 0, err
		}
	}
	var ran, some bool
	asked := c.Now()
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if ran, err = tx.SomeRan(run.UID, run.Attempt); err == nil {
			some, err = tx.SomeFetched(run.UID, run.Attempt)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if some {
		err = c.fetchRest(ctx, run)
	}
	// Removed early, a DAG has no directories of nodes, for which HTCondor would be asked in vain.
	if ran && (!some || lacksDirectory(err)) {
		err = c.brought(ctx, dagJob(run), run, func(from string) error { return c.unpack(ctx, run, from) })
	}
	switch {
	case errors.Is(err, errGone):
		return ledger.GivenUp, c.sender.Gone(ctx, run, asked)
	case err != nil:
		return 0, err
	}
	return ledger.IsFetched, c.Ledger.Write(
		ctx,
		func(tx *ledger.Tx) error { return tx.AllNodesFetched(run.UID, run.Attempt) },
	)
}

// brought runs a fetch, and then keep with the directory in which those of the nodes are. Its error is errGone if
// nothing can arrive any more.
func (c *Controller) brought(
	ctx context.Context,
	procs schedd.Procs,
	run ledger.Run,
	keep func(from string) error,
) error {
	booking, err := c.book(run)
	if err != nil {
		return err
	}
	defer booking.Leave()
	dir, err := c.Output.Begin([]int{0})
	if err != nil {
		return noSpace(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers are removed at the next start
	booking.In(dir, output.Room{})
	arrived := false
	err = c.eachSender(ctx, backend.TargetOf(run), func(id schedd.Identity) (err error) {
		if arrived {
			return nil
		}
		if err := c.transfer(ctx, id, run, procs, dir, booking); err != nil {
			return err
		}
		arrived, err = output.Arrived(dir, 0)
		return err
	})
	switch {
	case err != nil:
		return err
	case !arrived:
		return c.missing(ctx, run)
	}
	if err := output.Sync(dir); err != nil {
		return noSpace(err)
	}
	booking.Keep(output.Taken(dir))
	return noSpace(keep(filepath.Join(dir, schedd.NodesBrought(procs))))
}

// errGone says that DAGMan's job has left the queue.
var errGone = errors.New("DAGMan's job is no longer in the queue")

// missing returns why nothing of a DAG has arrived: errGone, unless its job is still there.
func (c *Controller) missing(ctx context.Context, run ledger.Run) error {
	id, err := c.Questioner(ctx, backend.TargetOf(run))
	if err != nil {
		return err
	}
	why := errGone
	err = c.Schedd.Query(
		ctx,
		id,
		schedd.Query{Where: dagJob(run).Tag.Constraint().In(run.Cluster)},
		func(j condor.Job) error {
			why = backend.OtherAccount(
				fmt.Sprintf(
					"nothing of DAG %s of the account %s can be fetched with the credentials of namespace %s",
					j.ID(),
					j.Owner,
					run.Namespace,
				),
			)
			return nil
		},
	)
	if err != nil {
		return err
	}
	return why
}

// recordFetched records that nothing is left to fetch of a DAG.
func (c *Controller) recordFetched(ctx context.Context, run ledger.Run, as ledger.Fetched) error {
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		job, err := tx.Proc(run.UID, run.Attempt, 0)
		if err != nil {
			return err
		}
		job.Fetched = as
		whyNot := ""
		if as == ledger.GivenUp {
			whyNot = "the output of a node could not be fetched"
		}
		return errors.Join(tx.UpdateProc(job), tx.ExpectNodePushes(run.UID, run.Attempt, whyNot))
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("record that the output of DAG %d is here: %w", run.Attempt, err)
	}
	c.pusher.Queue.Add(keyOf(run))
	return nil
}

// unpack puts the output of each node into its place. The spec may have been edited since the DAG was sent.
func (c *Controller) unpack(ctx context.Context, run ledger.Run, from string) error {
	for next := 0; ; {
		page, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Node, error) {
			return tx.Nodes(run.UID, run.Attempt, ledger.NodeFilter{From: next, Limit: nodesAtOnce})
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := c.keepPage(ctx, run, from, page); err != nil {
			return err
		}
		c.Observer.NodesFetched(
			len(slices.DeleteFunc(slices.Clone(page), func(n ledger.Node) bool { return n.Cluster == 0 })),
		)
		next = page[len(page)-1].Number + 1
	}
}

// keepPage puts the output of some nodes into its place, and their results into the ledger.
func (c *Controller) keepPage(ctx context.Context, run ledger.Run, from string, page []ledger.Node) (err error) {
	texts := make([]string, len(page)) // results
	for i, n := range page {
		if texts[i], err = c.keep(run, from, n); err != nil {
			return fmt.Errorf("keep the output of node %d of step %s: %w", n.Number, n.StepName, err)
		}
	}
	return c.keepResults(ctx, page, texts)
}

// keep puts the output of one node into its place, and returns what is in the file of its results.
func (c *Controller) keep(run ledger.Run, from string, n ledger.Node) (results string, err error) {
	node := strconv.Itoa(n.Number)
	place, err := submit.PlaceOf(from, n.Number)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // it never ran
	}
	if err != nil {
		return "", err
	}
	if err := errors.Join(output.RestoreNames(from, n.Number), output.Unpack(from, n.Number)); err != nil {
		return "", err
	}
	results, err = submit.ResultsOf(from, n.Number)
	own, err2 := submit.OwnFiles(from, n.Number)
	if err := errors.Join(err, err2, output.Discard(from, n.Number, own...)); err != nil {
		return "", err
	}
	at, err := storedAs(run)
	if err != nil {
		return "", err
	}
	_, err = c.Output.Place(from, node, at, n.StepName+"/"+place)
	return results, err
}

// nodesAtOnce is how many rows are read together.
const nodesAtOnce = 1000

// dagJob names DAGMan's job.
func dagJob(run ledger.Run) schedd.Procs {
	return schedd.Procs{
		Tag:     condor.Tag{UID: run.UID, Attempt: run.Attempt, Namespace: run.Namespace, Name: run.Name},
		Cluster: run.Cluster,
		Numbers: []int{0},
		DAG:     true,
	}
}

// release lets DAGMan's job leave the queue. It is no error if it has; it is one if it cannot, as the account has
// become another one since its output was fetched.
func (c *Controller) release(ctx context.Context, run ledger.Run) error {
	found := false
	err := c.eachSender(ctx, backend.TargetOf(run), func(id schedd.Identity) error {
		o, err := c.Schedd.Change(ctx, id, schedd.Release{Procs: dagJob(run)})
		found = found || o.Found
		return err
	})
	if err == nil && !found {
		err = c.missing(ctx, run)
	}
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("let a fetched DAG leave the queue: %w", err)
	}
	return nil
}
