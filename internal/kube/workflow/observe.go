package workflow

import (
	"context"
	"errors"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/crosscheck/nodes"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Crosscheck is one pass over every DAG whose end HTCondor has not confirmed, and then over their nodes.
func (c *Controller) Crosscheck(ctx context.Context) error {
	return errors.Join(c.dags.Crosscheck(ctx), c.nodes.Crosscheck(ctx), c.Orphans.Watch(ctx))
}

// Refresh asks only the queues, so that the numbers of idle, running and held nodes are known between two cross-checks.
func (c *Controller) Refresh(ctx context.Context) error {
	return errors.Join(c.dags.Refresh(ctx), c.nodes.Refresh(ctx))
}

// Hint looks at once at what a schedd's mirror says has changed of DAGMan's own jobs.
func (c *Controller) Hint(ctx context.Context, e schedd.Endpoint) error { return c.dags.Hint(ctx, e) }

// Record stores a node's own report of its start or its end. It returns nil only when the ledger has it durably. It
// implements notify.Recorder for callbacks with a node.
func (c *Controller) Record(ctx context.Context, callback notify.Callback, tokenHash []byte) error {
	var r nodes.Recorded
	var open int
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
		if r, err = nodes.Record(tx, callback, tokenHash, c.Now()); err != nil {
			return err
		}
		steps, err := tx.NodeCounts(r.Run.UID, r.Run.Attempt)
		open = DAG{Steps: steps}.open()
		return err
	})
	if err != nil {
		return err
	}
	key := keyOf(r.Run)
	if r.Ask || open == 0 {
		c.checks.AddAfter(key, reconciler.FirstRetry) // HTCondor needs a moment from the callback to the job's end
	}
	c.noteResults(key, r.Results, r.Ignored)
	if r.Changed {
		c.Counted(key)
	}
	return nil
}

// CheckSoon makes HTCondor be asked about a DAG.
func (c *Controller) CheckSoon(run ledger.Run) { c.checks.Add(keyOf(run)) }

// checkSome asks about the newest DAGs of workflows soon after callbacks, with the same questions about those of an
// account. It asks a few times; then the cron schedule takes over.
func (c *Controller) checkSome(ctx context.Context, keys []string) {
	var newest []ledger.Run
	for _, key := range keys {
		runs, err := c.Runs(ctx, key)
		n := len(runs)
		if err != nil || n == 0 || runs[n-1].State != ledger.Submitted {
			c.checks.Forget(key)
			continue
		}
		newest = append(newest, runs[n-1])
	}
	for _, g := range backend.Groups(newest) {
		if err := c.check(ctx, g); err != nil {
			c.Log.Warn().Err(err).Int("workflows", len(g.Runs)).Msg("check after a callback")
		}
	}
	for _, run := range newest {
		key := keyOf(run)
		settled, err := c.isSettled(ctx, run)
		over := err == nil && settled
		c.News(key, over)
		if over || c.checks.NumRequeues(key) >= 5 {
			c.checks.Forget(key)
			continue
		}
		c.checks.AddRateLimited(key)
	}
}

// checked passes the findings about DAGMan's own jobs on.
type checked struct{ *Controller }

func (checked) Passed(string, schedd.Endpoint, time.Duration, error) {}
func (c checked) Changed(run ledger.Run)                             { c.Controller.Changed.Add(keyOf(run)) }
func (c checked) Unchanged(run ledger.Run)                           { c.Routine.Add(keyOf(run)) }

func (c checked) Checked(run ledger.Run) {
	c.News(keyOf(run), !run.Ended.IsZero())
}

func (c checked) Unread(run ledger.Run, jobs []string) {
	if len(jobs) > 0 {
		c.Log.Warn().Str("workflow", keyOf(run)).Strs("jobs", jobs).Msg("ads that cannot be fetched or read")
	}
}

func (c checked) Repaired(run ledger.Run, repaired crosscheck.Alike) {
	if repaired.Kind == crosscheck.SilentEnd {
		return // DAGMan's job has no callback
	}
	c.Options.Observer.Repaired(repaired.Kind, 1)
	c.Log.Info().Str("workflow", keyOf(run)).Int("cluster", run.Cluster).Str("kind", string(repaired.Kind)).
		Msg("repaired")
}

func (c checked) Missing(t backend.Target, m crosscheck.Missing) {
	c.Answering.Missing("DAGs", t, m.Jobs, string(m.Doubt))
}

// Used: DAGMan's own job has no cores.
func (checked) Used(ledger.Run, int64) {}

func (c checked) Stuck(ctx context.Context, run ledger.Run) error { return c.sender.Stuck(ctx, run) }

// followed passes the findings about nodes on.
type followed struct{ *Controller }

func (c followed) Passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error) {
	c.Options.Observer.NodesPassed(pass, endpoint, err)
	c.Log.Debug().Str("pass", "nodes' "+pass).Stringer("schedd", endpoint).Dur("took", took).Err(err).Msg("pass")
}

func (c followed) Changed(run ledger.Run) {
	c.Counted(keyOf(run))
}

func (c followed) Used(run ledger.Run, coreSeconds int64) {
	c.Options.Observer.Used(run.Namespace, coreSeconds)
}

func (c followed) Missing(t backend.Target, m crosscheck.Missing) {
	c.Answering.Missing("nodes", t, m.Jobs, string(m.Doubt))
}

func (c followed) Unread(run ledger.Run, jobs []string) { checked(c).Unread(run, jobs) }

func (c followed) Repaired(run ledger.Run, repaired crosscheck.Alike) {
	c.Options.Observer.Repaired(repaired.Kind, len(repaired.Numbers))
	line := c.Log.Info().Str("workflow", keyOf(run)).Int("dag", run.Attempt).Int("nodes", len(repaired.Numbers))
	reconciler.LogRepaired(line, repaired)
}
