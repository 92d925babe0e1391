package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/workflow"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// nodeStore holds the output of workflows. It is not that of HTCJobs, which may have the same names.
func (o Options) nodeStore() output.Store {
	if o.store().Root == "" {
		return output.Store{}
	}
	return output.Store{Root: filepath.Join(o.Data, "workflows")}
}

// shares returns those of the volume of --data: for the output of both kinds, and for what is staged.
func (o Options) shares() (kept, staged *output.Shares) {
	keep := o.KeepFree.Value()
	kept = o.store().NewShares(keep, time.Now)
	kept.Kept, kept.Alone = append(kept.Kept, o.nodeStore().Root, o.uploadDir()), o.Namespace != ""
	staged = &output.Shares{
		Volume:  func() (free, size output.Room, err error) { return output.Volume(o.stagingDir()) },
		Reserve: func(size output.Room) output.Room { return output.ReserveOfStaged(keep, size) },
		Alone:   o.Namespace != "", Now: time.Now,
	}
	return kept, staged
}

// newWorkflows adds the controller of HTCWorkflows to a loop.
func (d *daemon) newWorkflows(l *loop, common reconciler.Common) (err error) {
	ephemeral, err := artifact.ParseRegistries(d.o.EphemeralRegistries)
	if err != nil {
		return fmt.Errorf("--ephemeral-registries: %w", err)
	}
	l.workflows, err = workflow.New(workflow.Options{
		Common:        common,
		Output:        d.o.nodeStore(),
		Informer:      l.workflowInformer,
		Objects:       apiserver.HTCWorkflows(d.jobs, d.counts.StatusWritten),
		Events:        apiserver.Events[*v1alpha1.HTCWorkflow]{Recorder: l.recorder},
		Schedd:        l.asked.Answering,
		Keeper:        l.controller.Keeper(),
		ConfigMaps:    inputs.APIConfigMaps{Client: d.core.CoreV1()},
		JobSecrets:    l.jobSecrets,
		Uploads:       l.uploads,
		Jobs:          l.controller.InputJobs(),
		JobOutput:     d.o.store(),
		Artifacts:     artifact.NewFetcher(common.Site.Inputs.Registries),
		Registries:    artifact.NewPusher(common.Site.Inputs.Registries),
		Ephemeral:     ephemeral,
		Observer:      d.counts,
		SecretTouched: l.controller.SecretTouched,
		Log:           d.log.With().Str("component", "workflow").Logger(),
	})
	return err
}

// runWorkflows works until ctx ends.
func (d *daemon) runWorkflows(ctx context.Context, l *loop) error {
	if !cache.WaitForCacheSync(ctx.Done(), l.pools.HasSynced) {
		return nil
	}
	return l.workflows.Run(ctx)
}

// Record implements notify.Recorder.
func (l *loop) Record(ctx context.Context, c notify.Callback, tokenHash []byte) error {
	if c.Node != nil {
		return l.workflows.Record(ctx, c, tokenHash)
	}
	return l.controller.Record(ctx, c, tokenHash)
}

// both are the controllers, for metrics.
type both struct {
	*job.Controller
	workflows *workflow.Controller
}

// JobCredentials counts those of both kinds.
func (b both) JobCredentials() map[string]int {
	sum := b.Controller.JobCredentials()
	for state, n := range b.workflows.JobCredentials() {
		sum[state] += n
	}
	return sum
}

// WorkflowsWaiting counts those that wait for a worker.
func (b both) WorkflowsWaiting() map[string]int { return b.workflows.Waiting() }

// CredentialsOf implements jobcredentials.Runs.
func (l *loop) CredentialsOf(ctx context.Context, uid string, attempt int) (jobcredentials.Run, error) {
	return l.controller.CredentialsOf(ctx, uid, attempt)
}

// CredentialsOfStep implements jobcredentials.Runs.
func (l *loop) CredentialsOfStep(ctx context.Context, uid string, attempt, step int) (jobcredentials.Run, error) {
	return l.workflows.CredentialsOfStep(ctx, uid, attempt, step)
}

// Crosscheck asks about everything whose end HTCondor has not confirmed.
func (l *loop) Crosscheck(ctx context.Context) error {
	return errors.Join(l.controller.Crosscheck(ctx), l.workflows.Crosscheck(ctx))
}

// Hint looks at once at what a schedd's feed says has changed.
func (l *loop) Hint(ctx context.Context, e schedd.Endpoint) error {
	return errors.Join(l.controller.Hint(ctx, e), l.workflows.Hint(ctx, e))
}

// Refresh asks only the queues.
func (l *loop) Refresh(ctx context.Context) error {
	return errors.Join(l.controller.Refresh(ctx), l.workflows.Refresh(ctx))
}

// Reconcile compares everything in a scope with HTCondor. What has vanished is looked at for both kinds.
func (l *loop) Reconcile(ctx context.Context, o job.ReconcileOptions) (job.Report, error) {
	report, err := l.controller.Reconcile(ctx, o)
	checked, failed := l.workflows.Reconcile(
		ctx,
		o.Orphans(),
		func(d crosscheck.Difference) { report.Differences = append(report.Differences, d) },
	)
	report.Checked += checked
	more, unseen := l.workflows.ReconcileOrphans(ctx, o.Orphans())
	report.Differences = append(report.Differences, more...)
	return report, errors.Join(err, failed, unseen)
}

// SecretChanged continues with what waits for credentials.
func (l *loop) SecretChanged(namespace string) {
	l.controller.SecretChanged(namespace)
	l.workflows.SecretChanged()
}

// LedgerBack continues with what waits for a ledger that can be written again.
func (l *loop) LedgerBack() {
	l.controller.LedgerBack()
	l.workflows.LedgerBack()
}
