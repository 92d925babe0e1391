package job

import (
	"context"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// resolveInputs finds the sources of the inputs that htcd brings; nil if there are none. While it waits for other
// HTCJobs, their changes wake it.
func (c *Controller) resolveInputs(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	procs int,
	items []string,
) (*inputs.Ready, error) {
	if !job.Spec.Brings() {
		return nil, nil
	}
	key := job.Namespace + "/" + job.Name
	c.awaitSources(job)
	b := inputs.Bringer{
		ConfigMaps: c.ConfigMaps, Secrets: c.JobSecrets, Uploads: c.Uploads, Jobs: inputJobs{c}, Store: c.Output,
		Max: c.Site.MaxInput, Missing: c.waiters.Missing(key), Items: items,
	}
	if references := inputs.References(job.Spec); len(references) > 0 {
		b.Artifacts = c.Artifacts.For(key, references)
	}
	ready, err := b.Resolve(ctx, job, procs)
	if err == nil {
		c.waiters.Forget(key)
	}
	return ready, err
}

// awaitSources has changes of the HTCJobs whose output it needs wake an HTCJob. It comes before they are looked at, so
// that no change is missed.
func (c *Controller) awaitSources(job *v1alpha1.HTCJob) {
	var sources []string
	for _, name := range inputs.Sources(job.Spec) {
		sources = append(sources, job.Namespace+"/"+name)
	}
	c.waiters.Wait(job.Namespace+"/"+job.Name, sources)
}

// stageInputs writes inputs into a run's directory and names them in the run.
func (c *Controller) stageInputs(ready *inputs.Ready, run *ledger.Run) error {
	if ready == nil {
		return nil
	}
	if what := ready.Fetches(); what != "" {
		defer c.showFetch(run.Namespace+"/"+run.Name, what)()
	}
	return c.sender.StageInputs(ready, run)
}

// showFetch has the status say what is being fetched, until over is called.
func (c *Controller) showFetch(key, what string) (over func()) {
	before := c.Memory.Of(key).Blockers[reconciler.Acting]
	c.Memory.Wait(key, reconciler.Blocked(v1alpha1.ConditionInputsReady, inputs.ReasonFetching, what))
	c.Changed.Add(key)
	return func() { c.Memory.Change(key, func(r *record) { r.Blockers[reconciler.Acting] = before }) }
}

// stageAgain books room and does stageInputs for a run whose intent is in the ledger, unless that was done.
func (c *Controller) stageAgain(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	run *ledger.Run,
	sandbox submit.Sandbox,
	items []string,
	recorded string,
) (leave func(), err error) {
	if job.Spec.Brings() {
		if has, err := sending.HasInputs(*run, recorded); err != nil {
			return nil, err
		} else if has {
			run.InputsDigest = recorded
			return c.sender.Room(*run, sandbox, output.Room{}, output.Taken(run.TempDir))
		}
	}
	staging, end := reconciler.Staging(ctx, c.engine, job)
	defer end()
	ready, err := c.resolveInputs(staging, job, run.All(), items)
	if err != nil {
		return nil, err
	}
	if leave, err = c.sender.Room(*run, sandbox, ready.Needs(), output.Room{}); err != nil {
		return nil, err
	}
	if err := c.stageInputs(ready, run); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// InputJobs tells package inputs about HTCJobs.
func (c *Controller) InputJobs() inputs.Jobs { return inputJobs{c} }

// inputJobs tells package inputs about HTCJobs.
type inputJobs struct{ *Controller }

func (j inputJobs) HTCJob(namespace, name string) *v1alpha1.HTCJob {
	return j.Get(namespace + "/" + name)
}

func (j inputJobs) FailedProcs(ctx context.Context, uid string, attempt int) (map[int]bool, error) {
	failed := map[int]bool{}
	err := j.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		procs, err := tx.Procs(uid, attempt, ledger.ProcFilter{Status: ledger.StatusFailed})
		for _, p := range procs {
			failed[p.Proc] = true
		}
		return err
	})
	return failed, err
}

// sourceChanged lets those continue that wait for an HTCJob.
func (c *Controller) sourceChanged(before, now *v1alpha1.HTCJob) {
	if before != nil && now != nil && inputs.Judge(now.Name, before) == inputs.Judge(now.Name, now) {
		return
	}
	job := now
	if job == nil {
		job = before
	}
	for _, key := range c.waiters.Of(job.Namespace + "/" + job.Name) {
		c.Retry(key)
	}
}
