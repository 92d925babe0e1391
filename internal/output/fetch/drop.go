package fetch

import (
	"context"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// dropReplaced drops the output of earlier attempts once the newest has ended and its own has been fetched.
func (f *Fetcher) dropReplaced(ctx context.Context, key string) error {
	runs, err := f.runsOf(ctx, key)
	if err != nil || len(runs) == 0 {
		return err
	}
	newest := runs[len(runs)-1]
	if !f.fetchable(newest) || newest.State != ledger.Submitted || !newest.Confirmed {
		return nil
	}
	counts, err := ledger.Get(ctx, f.Ledger, func(tx *ledger.Tx) (ledger.OutputCounts, error) {
		return tx.Output(newest.UID, newest.Attempt)
	})
	if err != nil || counts.Waiting > 0 || counts.Completed == counts.GivenUp {
		return err
	}
	return f.Store.DropBefore(output.Attempt{Namespace: newest.Namespace, Name: newest.Name, Number: newest.Attempt})
}

// Clear empties the place of an attempt's output before the attempt is sent: a deleted object of the same name may have
// had the same attempt. That object's fetches no longer keep anything there, since the intent of this one is in the
// ledger.
func (f *Fetcher) Clear(run ledger.Run) error {
	if !f.fetchable(run) {
		return nil
	}
	if run.Attempt == 1 {
		return f.Store.Drop(run.Namespace, run.Name)
	}
	return f.Store.DropAttempt(output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt})
}

// Outdate puts aside the output of a proc that runs again. It is for the transaction in which that is recorded.
func (f *Fetcher) Outdate(run ledger.Run, proc int) error {
	if !f.fetchable(run) {
		return nil
	}
	return f.Store.DropProc(output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt}, proc)
}
