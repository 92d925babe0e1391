package job

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
)

// ReconcileOptions is the scope of a pass that was requested.
type ReconcileOptions struct {
	Namespace string `json:"namespace,omitempty"` // empty: all
	Name      string `json:"name,omitempty"`      // of the HTCJobs; empty: all
	DryRun    bool   `json:"dryRun,omitempty"`    // report differences but change nothing

	RemoveOrphans bool `json:"removeOrphans,omitempty"` // release runs that lost their object for removal
}

// Report is the result of a pass.
type Report struct {
	Differences []crosscheck.Difference `json:"differences"` // never nil
	Checked     int                     `json:"checked"`     // jobs compared with HTCondor
}

// Reconcile compares everything in the ledger within its scope with the schedd, ended jobs included as far as queue or
// history still know them, then the status of the HTCJobs with the ledger, and repairs both. It submits nothing. What
// cannot be done about one HTCJob, or with one schedd, does not keep the others from being compared.
func (c *Controller) Reconcile(ctx context.Context, o ReconcileOptions) (Report, error) {
	report := Report{Differences: []crosscheck.Difference{}}
	found := func(d crosscheck.Difference) { report.Differences = append(report.Differences, d) }
	checked, err := c.reconcileJobs(ctx, o, found)
	report.Checked = checked

	differ := map[objectName]bool{}
	for _, d := range report.Differences {
		differ[objectName{d.Namespace, d.Name}] = true
	}
	if !o.DryRun {
		for job := range differ {
			err = errors.Join(err, c.Objects.Each(ctx, job.namespace, job.name, c.rewrite(ctx)))
		}
	}
	err = errors.Join(err, c.reconcileStatus(ctx, o, differ, found))
	kept, failed := c.ReconcileOrphans(ctx, o.Orphans())
	report.Differences = append(report.Differences, kept...)
	return report, errors.Join(err, failed)
}

type objectName struct{ namespace, name string }

// reconcileJobs cross-checks everything in the scope.
func (c *Controller) reconcileJobs(
	ctx context.Context,
	o ReconcileOptions,
	found func(crosscheck.Difference),
) (procs int, err error) {
	runs, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Run, error) {
		return tx.Runs(ledger.RunFilter{Namespace: o.Namespace, Name: o.Name, State: ledger.Submitted})
	})
	if err != nil {
		return 0, err
	}
	checker := c.crosscheck
	if o.DryRun { // it does not record whether a schedd answers, either
		checker = &crosscheck.Checker{
			Driver: reconciler.Drives[crosscheck.RunObserver](c.Common, c.Answering.Schedd, checked{c}),
		}
	}
	return checker.Reconcile(ctx, runs, o.DryRun, found)
}

// statusSettles is how long a differing status may take to become right by itself: a callback may be on its way from
// the ledger to the apiserver, and counts are not written at every change.
const statusSettles = 2 * time.Second

// reconcileStatus compares the status of HTCJobs with the ledger. It skips those whose jobs differed, since their
// status follows from the jobs.
func (c *Controller) reconcileStatus(
	ctx context.Context,
	o ReconcileOptions,
	differ map[objectName]bool,
	found func(crosscheck.Difference),
) error {
	if o.Namespace == "" {
		o.Namespace = c.Namespace
	}
	var suspects []objectName
	var errs []error
	failed := func(name objectName, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("compare the status of HTCJob %s/%s: %w", name.namespace, name.name, err))
		}
	}
	err := c.Objects.Each(ctx, o.Namespace, o.Name, func(job *v1alpha1.HTCJob) error {
		name := objectName{job.Namespace, job.Name}
		if differ[name] {
			return nil
		}
		was, _, err := c.compareStatus(ctx, job)
		if was != "" {
			suspects = append(suspects, name)
		}
		failed(name, err)
		return ctx.Err()
	})
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("compare the status of HTCJobs: %w", err))...)
	}
	if len(suspects) == 0 {
		return errors.Join(errs...)
	}
	select {
	case <-ctx.Done():
		return errors.Join(append(errs, ctx.Err())...)
	case <-time.After(statusSettles):
	}
	for _, name := range suspects {
		failed(name, c.Objects.Each(ctx, name.namespace, name.name, func(job *v1alpha1.HTCJob) error {
			was, is, err := c.compareStatus(ctx, job)
			if err != nil || was == "" {
				return err
			}
			if !o.DryRun {
				if err := c.rewrite(ctx)(job); err != nil {
					return err
				}
			}
			found(crosscheck.Difference{Namespace: job.Namespace, Name: job.Name, Was: was, Is: is,
				Evidence: "the ledger says otherwise than .status", Repaired: !o.DryRun})
			return nil
		}))
	}
	return errors.Join(errs...)
}

// rewrite returns a function that brings the status of an HTCJob in line with the ledger.
func (c *Controller) rewrite(ctx context.Context) func(*v1alpha1.HTCJob) error {
	return func(job *v1alpha1.HTCJob) error {
		key := job.Namespace + "/" + job.Name
		defer c.Alone(key)()
		return c.SyncObject(ctx, key, job)
	}
}

// compareStatus returns how the status of an HTCJob differs from its run in the ledger; "" if it does not.
func (c *Controller) compareStatus(ctx context.Context, job *v1alpha1.HTCJob) (was, is string, err error) {
	s, err := c.gather(ctx, job)
	if err != nil || s.Run == nil || job.DeletionTimestamp != nil {
		return "", "", err
	}
	was, is = statusWords(job.Status, lifecycle.NewStatus(s, lifecycle.View{Now: c.Now()}))
	return was, is, nil
}

// statusWords lists the fields in which two statuses differ, as far as they come from the ledger. When the schedd was
// last asked, and whether it answered, does not make a status wrong.
func statusWords(was, is v1alpha1.HTCJobStatus) (string, string) {
	var before, after []string
	compare := func(field string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			before, after = append(
				before,
				fmt.Sprintf("%s=%v", field, a),
			), append(
				after,
				fmt.Sprintf("%s=%v", field, b),
			)
		}
	}
	compare("phase", was.Phase, is.Phase)
	compare("active", was.Active, is.Active)
	compare("succeeded", was.Succeeded, is.Succeeded)
	compare("failed", was.Failed, is.Failed)
	compare("idle", was.Idle, is.Idle)
	compare("running", was.Running, is.Running)
	compare("held", was.Held, is.Held)
	compare("attempt", was.Attempt, is.Attempt)
	compare("observedGeneration", was.ObservedGeneration, is.ObservedGeneration)
	compare("clusterId", was.ClusterID, is.ClusterID)
	compare("schedd", was.Schedd, is.Schedd)
	compare(
		"jobid",
		lifecycle.Shorten(strings.Join(was.JobID, ","), lifecycle.MaxListed),
		lifecycle.Shorten(strings.Join(is.JobID, ","), lifecycle.MaxListed),
	)
	compare("startTime", timeWord(was.StartTime), timeWord(is.StartTime))
	compare("completionTime", timeWord(was.CompletionTime), timeWord(is.CompletionTime))
	compare("failures", failureWords(was.Failures), failureWords(is.Failures))
	for _, kind := range []string{v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionHeld} {
		compare(kind, meta.IsStatusConditionTrue(was.Conditions, kind), meta.IsStatusConditionTrue(is.Conditions, kind))
	}
	return strings.Join(before, " "), strings.Join(after, " ")
}

func timeWord(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func failureWords(failures []v1alpha1.Failure) string {
	var words []string
	for _, f := range failures {
		words = append(words, f.JobID+":"+f.Message)
	}
	return lifecycle.Shorten(strings.Join(words, ","), lifecycle.MaxListed)
}
