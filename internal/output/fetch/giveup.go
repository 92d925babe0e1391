package fetch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// giveUpGone gives up the output of jobs that have left the queue. Those still there belong to somebody else or are
// running again.
func (f *Fetcher) giveUpGone(ctx context.Context, b batch, missing []int) error {
	asked := f.Now()
	queued, err := f.queued(ctx, b)
	if err != nil {
		return err
	}
	var gone []int
	var others []condor.Job
	again := false
	for _, proc := range missing {
		switch j, there := queued[proc]; {
		case !there:
			gone = append(gone, proc)
		case j.Status == condor.Completed:
			others = append(others, j)
		default:
			again = true
		}
	}
	if len(gone) > 0 {
		if err := f.Gone(ctx, b.run, asked); err != nil {
			return err
		}
	}
	if err := f.giveUp(ctx, b.run, gone, "the job left the queue before its output was fetched"); err != nil {
		return err
	}
	if again {
		f.Observer.Requeued(b.run)
		return errors.New("a job that had completed is in the queue again, and is asked about")
	}
	return ofOthers(b.run, others, "be fetched from")
}

// queued returns the jobs of a batch's run that are in the queue, by their numbers.
func (f *Fetcher) queued(ctx context.Context, b batch) (map[int]condor.Job, error) {
	id, err := backend.Questioner(ctx, f.Credentials, backend.TargetOf(b.run))
	if err != nil {
		return nil, err
	}
	queued := map[int]condor.Job{}
	err = f.Schedd.Query(ctx, id, schedd.Query{Where: b.of(nil).Tag.Constraint()}, func(j condor.Job) error {
		if j.Cluster == b.run.Cluster {
			queued[j.Number()] = j
		}
		return nil
	})
	return queued, err
}

// ofOthers returns the error for jobs of another account; nil if there are none.
func ofOthers(run ledger.Run, others []condor.Job, cannot string) error {
	if len(others) == 0 {
		return nil
	}
	return backend.OtherAccount(
		fmt.Sprintf("%s of the account %s, such as %s, cannot %s with the credentials of namespace %s",
			jobs(len(others)), others[0].Owner, others[0].ID(), cannot, run.Namespace),
	)
}

func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// giveUp records that the output of some procs cannot be fetched, and lets their jobs go.
func (f *Fetcher) giveUp(ctx context.Context, run ledger.Run, procs []int, why string) error {
	if len(procs) == 0 {
		return nil
	}
	err := f.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		return mark(tx, run, procs, ledger.GivenUp, func(int) string { return "(no output: " + why + ")" })
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("give up output: %w", err)
	}
	f.pauses.done(run, procs)
	f.Log.Warn().Str("job", keyOf(run)).Int("cluster", run.Cluster).Ints("procs", procs).Msg("output given up: " + why)
	f.Observer.GaveUp(run, len(procs), why)
	return f.release(ctx, run, procs)
}

// goneMessage names the file that the schedd does not have.
func goneMessage(bad *schedd.TransferError) string {
	file := bad.Missing()
	if file == "" {
		return "the schedd does not have the output any more: " + bad.Error()
	}
	return fmt.Sprintf("the schedd has no file %q, which is part of it: %s", filepath.Base(file), bad)
}
