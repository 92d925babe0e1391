package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

// part is what of an HTCJob an attempt sends. The zero value is all of it.
type part struct {
	numbers procset.Set
	base    *ledger.Run // from which the other jobs have their ends and their output
	failed  int         // how many of these have failed
}

// partOf reads from the ledger what the next attempt sends. It waits until everything is here that the jobs have left
// which do not run again.
func (c *Controller) partOf(ctx context.Context, s lifecycle.Situation) (part, error) {
	choice, listed, _ := s.Again()
	if choice == lifecycle.Everything {
		return part{}, nil
	}
	if choice == lifecycle.Listed && s.Run.Unmade > 0 && !slices.Contains(lifecycle.Unkept, s.Run.Stop) {
		// Those that are not listed keep their ends.
		as := crosscheck.Unmade(s.Run.Stop, c.Now())
		err := c.endUnmade(ctx, *s.Run, 0, s.Run.Procs, as, func(*ledger.Tx) error { return nil })
		if err != nil {
			return part{}, err
		}
	}
	var kept, succeeded []int
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if succeeded, err = tx.Kept(s.Run.UID, s.Run.Attempt, false); err == nil {
			kept, err = tx.Kept(s.Run.UID, s.Run.Attempt, choice != lifecycle.Unsucceeded, lifecycle.Unkept...)
		}
		return err
	})
	if err != nil {
		return part{}, err
	}
	numbers := lifecycle.Numbers(listed, kept, s.Run.All())
	if numbers.Len() == 0 {
		return part{}, nil
	}
	if n := s.Output.Waiting + s.Pushes.Unpushed; n > 0 {
		return part{}, &sending.Waiting{
			After:  reconciler.FirstRetry,
			Reason: lifecycle.ReasonOutputAwaited,
			Message: fmt.Sprintf("%s still to be fetched or pushed of attempt %d; then the jobs %s run again",
				lifecycle.IsOrAre(n, "output"), s.Run.Attempt, lifecycle.Shorten(numbers.String(), lifecycle.MaxListed)),
		}
	}
	p := part{numbers: numbers, base: s.Run, failed: s.Run.All() - numbers.Len()}
	for _, n := range succeeded {
		if !numbers.Has(n) {
			p.failed--
		}
	}
	return p, nil
}

// of makes a run send this part.
func (p part) of(run ledger.Run) ledger.Run {
	if p.base != nil {
		run.Sent, run.Procs, run.Jobs, run.KeptFailed = p.numbers.String(), p.numbers.Len(), p.base.All(), p.failed
		run.ItemsDigest = p.base.ItemsDigest
	}
	return run
}

// carry gives a run that was just inserted what it does not send.
func (p part) carry(tx *ledger.Tx, run ledger.Run) error {
	if p.base == nil {
		return nil
	}
	return tx.CarryProcs(run, p.base.Attempt)
}

// kept returns what a status says of the jobs that a run does not send, if the ledger does not.
func (p part) kept(run ledger.Run, status v1alpha1.HTCJobStatus) []ledger.Proc {
	if p.base != nil {
		return nil
	}
	return lifecycle.Kept(run, status)
}

// carryRefused is carry for a run that was refused, perhaps before its intent was recorded.
func carryRefused(tx *ledger.Tx, run ledger.Run) error {
	if run.Sent == "" {
		return nil
	}
	has, err := tx.Counts(run.UID, run.Attempt)
	if err != nil || has != (ledger.Counts{}) {
		return err
	}
	base, err := baseOf(tx, run)
	if err != nil {
		return err
	}
	return tx.CarryProcs(run, base)
}

// baseOf returns the attempt from which a run has what it does not send: the last one before it.
func baseOf(tx *ledger.Tx, run ledger.Run) (attempt int, err error) {
	runs, err := tx.Runs(ledger.RunFilter{Namespace: run.Namespace, Name: run.Name})
	for _, r := range runs {
		if r.UID == run.UID && r.Attempt < run.Attempt {
			attempt = max(attempt, r.Attempt)
		}
	}
	return attempt, err
}

// keepOutput puts the output of the jobs that a run does not send into the run's place. It may be repeated. The store
// says where it is: the ledger may have lost the attempt before.
func (c *Controller) keepOutput(ctx context.Context, run ledger.Run) error {
	if run.Sent == "" || run.OutputDir == "" {
		return nil
	}
	has, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]int, error) {
		return tx.CarriedOutput(run.UID, run.Attempt)
	})
	if err != nil {
		return err
	}
	all, err := c.Output.Attempts(run.Namespace, run.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, from := range slices.Backward(all) {
		if from.Number < run.Attempt {
			to := from
			to.Number = run.Attempt
			keep := procset.Of(has)
			return c.Output.Carry(from, to, keep.Has)
		}
	}
	return nil
}

// agree makes a run whose cluster was found in HTCondor what its ads say of the jobs' numbers: none if all jobs were
// sent. How many these are the intent says, if the ledger still has it: the schedd may show fewer, for instance of a
// cluster of which only some files arrived.
func (c *Controller) agree(ctx context.Context, job *v1alpha1.HTCJob, run *ledger.Run, f recovery.Finding) error {
	if f.Made { // HTCondor shows only those that were made
		if run.Restored && run.Sent == "" {
			run.Procs = f.Cluster.Procs
		}
		return nil
	}
	found := f.Numbers
	recorded, err := run.Numbers()
	if err != nil {
		return err
	}
	other := func(n int) bool { return !recorded.Has(n) }
	if len(found) == 0 && run.Sent == "" {
		if run.Restored {
			run.Procs = f.Cluster.Procs
		}
		return nil
	}
	if len(found) > 0 && !slices.ContainsFunc(found, other) {
		return nil
	}
	run.Sent, run.Procs, run.Jobs, run.KeptFailed = "", f.Cluster.Procs, 0, 0
	if len(found) > 0 { // what the others have ended with only the status says
		numbers := procset.Of(found)
		run.Sent, run.Procs, run.Jobs = numbers.String(), numbers.Len(), max(job.Jobs(), slices.Max(found)+1)
		run.KeptFailed = min(int(job.Status.Failed), run.Jobs-run.Procs)
	}
	return c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		return errors.Join(
			tx.UpdateIntent(*run),
			tx.DropCarried(run.UID, run.Attempt),
			tx.RecallProcs(*run, lifecycle.Kept(*run, job.Status)),
		)
	})
}
