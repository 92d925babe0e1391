package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// procsAtOnce is how many are read from the ledger at a time: a read delays what is written, and they are in memory
// until the reader has taken them.
const procsAtOnce = 200

// Procs lists jobs of an HTCJob, those of an attempt that was sent.
func (r *Reader) Procs(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	job, err := r.job(ctx, q)
	if err != nil {
		return nil, err
	}
	run, err := ledger.Get(ctx, r.o.Ledger, func(tx *ledger.Tx) (ledger.Run, error) {
		return latest(tx, string(job.UID), q.Attempt)
	})
	switch none := errors.Is(err, ledger.ErrNotFound); {
	case none && q.Attempt > 0:
		return nil, notFound(q, "HTCJob %s has no attempt %d", q.Name, q.Attempt)
	case err != nil && !none:
		return nil, fmt.Errorf("ask the ledger: %w", err)
	}
	return &aggregate.Answer{
		Attempt: run.Attempt, Jobs: run.All(), Close: func() {},
		Write: func(ctx context.Context, out io.Writer) error {
			left := limit(q.Limit)
			return left.reached(r.procs(ctx, run, q, left, json.NewEncoder(out)))
		},
	}, nil
}

// procs writes the wanted jobs of a run, page by page.
func (r *Reader) procs(ctx context.Context, run ledger.Run, q aggregate.Query, left *lines, out *json.Encoder) error {
	for filter := procFilter(q); ; {
		page, err := ledger.Get(ctx, r.o.Ledger, func(tx *ledger.Tx) ([]ledger.Proc, error) {
			return tx.Procs(run.UID, run.Attempt, filter)
		})
		if err != nil {
			return fmt.Errorf("ask the ledger: %w", err)
		}
		for _, p := range page {
			l := aggregate.Proc{
				Proc:     p.Proc,
				State:    aggregate.NodeState(ledger.Node{Proc: p}.State()),
				JobID:    p.JobID(),
				ExitCode: p.ExitCode,
				Signal:   p.Signal,
				Reason:   p.Reason,
				Message:  p.Message,
				Stderr:   p.Stderr,
				Changed:  p.Changed,
				Output:   p.Fetched == ledger.IsFetched || p.Fetched == ledger.Incomplete,
			}
			if q.State != "" && l.State != q.State {
				continue
			}
			if err := left.take(out.Encode(l)); err != nil {
				return err
			}
		}
		if len(page) < procsAtOnce {
			return nil
		}
		filter.From = page[len(page)-1].Proc + 1
	}
}

// procFilter lets the ledger look for the state, as far as it can.
func procFilter(q aggregate.Query) ledger.ProcFilter {
	f := ledger.ProcFilter{From: q.Proc, Limit: procsAtOnce}
	switch q.State {
	case aggregate.NodeDone:
		f.Status = ledger.StatusSucceeded
	case aggregate.NodeFailed:
		f.Status = ledger.StatusFailed
	case aggregate.NodeWaiting, aggregate.NodeIdle, aggregate.NodeRunning, aggregate.NodeHeld:
		f.Status = ledger.StatusOpen
	}
	return f
}

// Attempts lists those of an HTCJob.
func (r *Reader) Attempts(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	job, err := r.job(ctx, q)
	if err != nil {
		return nil, err
	}
	var all []aggregate.Attempt
	if err := r.o.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		all = nil
		runs, err := tx.Runs(ledger.RunFilter{Namespace: job.Namespace, Name: job.Name})
		if err != nil {
			return err
		}
		for _, run := range runs {
			if run.UID != string(job.UID) {
				continue
			}
			counts, err := tx.Counts(run.UID, run.Attempt)
			if err != nil {
				return err
			}
			all = append(all, aggregate.Attempt{
				Attempt:   run.Attempt,
				State:     string(run.State),
				Schedd:    run.Schedd,
				Cluster:   run.Cluster,
				Reason:    run.Reason,
				Message:   run.Message,
				Created:   run.Created,
				Submitted: run.Submitted,
				Started:   run.Started,
				Finished:  run.Finished,
				Ended:     run.Ended,
				Jobs:      run.All(),
				Idle:      counts.Idle,
				Running:   counts.Running,
				Held:      counts.Held,
				Done:      counts.Succeeded,
				Failed:    counts.Failed,
			})
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("ask the ledger: %w", err)
	}
	return &aggregate.Answer{Close: func() {}, Write: func(_ context.Context, out io.Writer) error {
		lines := json.NewEncoder(out)
		for _, a := range all {
			if err := lines.Encode(a); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// job is the HTCJob that is asked about.
func (r *Reader) job(ctx context.Context, q aggregate.Query) (*v1alpha1.HTCJob, error) {
	runner := func(job *v1alpha1.HTCJob) v1alpha1.Runner { return job.Spec.Runner }
	return lookUp(ctx, q, v1alpha1.Kind, r.o.HTCJobs, runner)
}

// lookUp finds an object that this htcd runs.
func lookUp[O metav1.Object](
	ctx context.Context, q aggregate.Query, kind string, look apiserver.Lookup[O], runner func(O) v1alpha1.Runner,
) (O, error) {
	object, there, err := look(ctx, q.Namespace, q.Name)
	if err == nil && !there {
		err = notFound(q, "there is no %s %s in namespace %s", kind, q.Name, q.Namespace)
	} else if err == nil && runner(object).Elsewhere() {
		by := runner(object).ManagedBy
		err = notFound(q, "%s %s is run by %s, as its spec.managedBy says, and not by this htcd", kind, q.Name, by)
	}
	return object, err
}
