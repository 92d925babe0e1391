package workflow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// prepared is a DAG that is ready to be sent.
type prepared struct {
	plannedDAG
	pool    pool.Pool
	sandbox submit.Sandbox
	first   int                // of the attempt's DAGs, if this one repeats
	states  []ledger.RuleState // of the rules by which it does
}

// submit begins the DAG of a level: finalizer, intent with its nodes, sandbox, condor_submit, row of DAGMan's job, in
// that order. Whatever interrupts it, the intent stays and recover takes over; only a refusal of the description is
// final.
func (c *Controller) submit(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation, d Decision) error {
	if s.newest() == nil {
		if back, err := c.IsBack(ctx, w); err != nil {
			return err
		} else if back {
			return c.recoverLost(ctx, w, s)
		}
	}
	run := c.newRun(w, s, d)
	token, hash := notify.NewToken()
	run.TokenHash = hash
	p, err := c.prepare(ctx, w, s, d.Level, run, nil)
	switch {
	case err != nil:
	case d.Again: // an attempt that has begun goes on under a lower limit
		err = c.fits(p)
	case p.counted: // how many nodes it has was not known before
		err = c.fitsNodes(p)
	}
	if err != nil {
		return c.sender.Refuse(ctx, run, err)
	}
	if err := c.poolWorks(ctx, p.pool, w.Namespace); err != nil {
		return err
	}
	if (p.brings() || resumes(w) || len(p.occasions) > 0) && s.Unfetched {
		return &sending.Waiting{
			After:   time.Second,
			Message: "what earlier DAGs have left is being fetched, as it is needed again",
		}
	}
	if err := c.Keeper.MayBegin(ctx, p.pool.Account(asJob(w))); err != nil {
		return err
	}
	t, id, err := c.Choose(ctx, asJob(w), p.pool, c.Site.Policy)
	if err != nil {
		return err
	}
	if err := c.sender.MayBegin(ctx, id, 1); err != nil {
		return err
	}
	if err := c.sender.TakesNodes(ctx, id, p.graph.SeveralNodes()); err != nil {
		return c.sender.Refuse(ctx, t.Of(run), err)
	}
	switch later, err := c.sentLater(ctx, reconciler.Places(asJob(w), p.pool, t), s); {
	case err != nil:
		return err
	case later:
		return c.recoverLost(ctx, w, s)
	}
	c.Absences.Clear(run.UID)
	run = p.pool.Sends(t.Of(run), p.pool.Effective(submit.Requests{}))
	run.ItemsDigest, run.Factory = p.digest, p.sandbox.Factory
	leave, err := c.stageInputs(ctx, w, p, &run)
	if err != nil {
		return c.sender.Refuse(ctx, run, err)
	}
	defer leave()
	begun, err := c.begin(ctx, w, run, p)
	if err != nil || !begun {
		return errors.Join(err, os.RemoveAll(run.TempDir))
	}
	if message := p.addition(); message != "" {
		c.Events.Normal(w, "SequencesAdded", message)
	}
	for range p.states {
		c.Observer.RuleActed(v1alpha1.ActionRepeat)
	}
	return c.send(ctx, id, w, run, p, token)
}

// newRun returns the row of a DAG before anything is done for it.
func (c *Controller) newRun(w *v1alpha1.HTCWorkflow, s Situation, d Decision) ledger.Run {
	run := ledger.Run{
		Kind:       ledger.Workflows,
		UID:        string(w.UID),
		Attempt:    1,
		Namespace:  w.Namespace,
		Name:       w.Name,
		Generation: w.Generation,
		SpecHash:   w.SpecHash(),
		Rerun:      w.Rerun(),
		State:      ledger.Intent,
		Procs:      1,
		Created:    c.Now(),
		Deferred:   true, // DAGMan's job has no callback
	}
	attempt := max(s.Attempt, 1)
	if n := s.newest(); n != nil {
		run.Attempt = n.Run.Attempt + 1
	}
	if d.Again {
		attempt = s.Attempt + 1
	} else {
		run.Rerun = s.DAGs[0].Run.Rerun // the annotation may have changed since
	}
	run.TempDir = c.stagingOf(w, run.Attempt)
	if c.Output.Root != "" {
		run.OutputDir, _ = c.Output.AttemptDir(attemptOf(w, attempt)) // Kubernetes has checked the names
	}
	return run
}

func (c *Controller) stagingOf(w *v1alpha1.HTCWorkflow, dag int) string {
	return filepath.Join(c.Staging, fmt.Sprintf("%s-%d", w.UID, dag))
}

// prepare returns the DAG of a level in HTCondor's terms. Its errors of kind schedd.Refused are about the spec.
// recorded is its run if its intent is in the ledger.
func (c *Controller) prepare(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	s Situation,
	level int,
	run ledger.Run,
	recorded *ledger.Run,
) (p prepared, err error) {
	if p.pool, err = c.poolOf(ctx, w, s); err != nil {
		return p, err
	}
	if p.plannedDAG, err = c.planDAG(ctx, w, s, level, recorded); err != nil {
		return p, err
	}
	if len(p.occasions) > 0 && recorded == nil {
		p.first, p.states = s.DAGs[0].Run.Attempt, s.repeatStates(run, p.plannedDAG)
	}
	dag, err := c.describe(ctx, w, p.pool, run, p.plannedDAG)
	if err != nil {
		return p, err
	}
	dag = c.throttled(dag, p.pool, s)
	if p.sandbox, err = dag.Render(); err != nil {
		return p, err
	}
	steps, _ := p.rows()
	if most := c.atOnce(dag.MaxJobs, p.pool, steps); most != dag.MaxJobs { // what the steps ask for is known only now
		dag.MaxJobs = most
		p.sandbox, err = dag.Render()
	}
	return p, err
}

// begin sets the finalizers and writes the intent with the nodes. It returns false if the object is not as the cache
// said; the queue will get its present version.
func (c *Controller) begin(ctx context.Context, w *v1alpha1.HTCWorkflow, run ledger.Run, p prepared) (bool, error) {
	held, err := c.Keeper.Hold(ctx, backend.TargetOf(run).Account)
	if err != nil {
		return false, err
	}
	defer held()
	if fresh, err := reconciler.Fresh(ctx, c.engine, w); err != nil || !fresh {
		return false, err
	}
	steps, places := p.rows()
	packed, tables := ledger.PackItems(p.items), map[string]ledger.Items{}
	for name, rows := range p.tables {
		tables[name] = ledger.PackItems(rows)
	}
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := tx.InsertRun(run); err != nil {
			return err
		}
		if err := tx.InsertNodes(run, steps, places); err != nil {
			return err
		}
		err := errors.Join(
			p.pool.Record(tx),
			tx.SetItems(run.UID, run.Attempt, packed),
			tx.SetTables(run.UID, run.Attempt, tables),
			tx.SetDestinations(run.UID, run.Attempt, p.destinations()),
		)
		if err != nil {
			return err
		}
		if err := errors.Join(
			tx.CarryNodes(run, p.kept.nodes),
			dropOutdated(tx, run),
		); err != nil ||
			len(p.occasions) == 0 {
			return err
		}
		for _, state := range p.states {
			if err := tx.SetRuleState(run.UID, p.first, state); err != nil {
				return err
			}
		}
		return tx.Repeat(run, p.first, p.occasions)
	})
	if errors.Is(err, ledger.ErrExists) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("record intent: %w", err)
	}
	return true, nil
}

// send runs condor_submit for a DAG whose intent is in the ledger.
func (c *Controller) send(
	ctx context.Context,
	id schedd.Identity,
	w *v1alpha1.HTCWorkflow,
	run ledger.Run,
	p prepared,
	token string,
) error {
	if err := c.sender.Stage(run, p.sandbox, token); err != nil {
		return err
	}
	if err := errors.Join(p.keepOutput(run), p.bring(run)); err != nil {
		c.Tries.Unstaged(run)
		return errors.Join(c.sender.StageError(err), os.RemoveAll(run.TempDir))
	}
	began := c.Hands(keyOf(run), run.Attempt)
	cluster, err := c.sender.Send(ctx, id, run)
	if condor.KindOf(err) == condor.Refused {
		return c.sender.Refuse(ctx, run, err)
	}
	if err != nil {
		return err
	}
	c.Log.Info().Str(
		"workflow",
		keyOf(run),
	).Int(
		"cluster",
		cluster.ID,
	).Int(
		"nodes",
		len(p.nodes),
	).Dur(
		"took",
		c.Now().Sub(began),
	).Msg(
		"submitted",
	)
	return c.recordCluster(ctx, w, run, cluster)
}

// recordCluster turns an intent into a submitted run with a row for DAGMan's job. The time of submission is now unless
// the run has one.
func (c *Controller) recordCluster(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	run ledger.Run,
	cluster condor.Cluster,
) error {
	var nodes int
	run, err := c.sender.Submitted(ctx, run, cluster, func(tx *ledger.Tx, run ledger.Run) error {
		steps, err := tx.NodeCounts(run.UID, run.Attempt)
		nodes = 0
		for _, step := range steps {
			nodes += step.Total()
		}
		return err
	})
	if err != nil {
		return err
	}
	c.Observer.DAGSubmitted(nodes)
	c.Memory.Change(keyOf(run), func(r *record) { r.Kind.part, r.Kind.parted, r.Kind.paging = time.Time{}, 0, false })
	c.Events.Normal(
		w,
		"Submitted",
		fmt.Sprintf("DAG %d.0 with %s is at schedd %s", run.Cluster, lifecycle.Plural(nodes, "node"), run.Schedd),
	)
	return nil
}
