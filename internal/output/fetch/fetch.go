package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// batch is what one fetch covers.
type batch struct {
	run   ledger.Run
	procs []ledger.Proc
}

func (b batch) attempt() output.Attempt {
	return output.Attempt{Namespace: b.run.Namespace, Name: b.run.Name, Number: b.run.Attempt}
}

// of returns some of its jobs as HTCondor names them.
func (b batch) of(numbers []int) schedd.Procs {
	return schedd.Procs{
		Tag:     condor.Tag{UID: b.run.UID, Attempt: b.run.Attempt},
		Cluster: b.run.Cluster,
		Numbers: numbers,
		Own:     b.run.Sent != "",
		Factory: b.run.Factory > 0,
	}
}

// fetch fetches one batch for an HTCJob, from its newest run first, and reports whether there may be more. If there is
// nothing to fetch, it drops output that has been replaced. Jobs that cannot leave the queue keep nothing else from
// being fetched.
func (f *Fetcher) fetch(ctx context.Context, key string) (more bool, err error) {
	left := f.releaseAgain(ctx, key)
	b, found, err := f.choose(ctx, key)
	if err != nil || !found {
		return false, errors.Join(left, err, f.dropReplaced(ctx, key))
	}
	here, wanted, err := f.arrivedBefore(b)
	if err != nil {
		return false, err
	}
	if len(here) > 0 {
		return true, f.commit(ctx, b, arrival{procs: here})
	}
	fit, booking, err := f.book(ctx, b, wanted)
	if err != nil {
		return false, err
	}
	defer booking.Leave()
	dir, err := f.Store.Begin(fit)
	if err != nil {
		return false, volumeError(fmt.Errorf("begin a fetch: %w", err))
	}
	defer os.RemoveAll(dir) // anything left is removed at the next start
	booking.In(dir, output.Room{})
	var arrived, missing []int
	err = guarded(ctx, booking, func(ctx context.Context) (err error) {
		arrived, missing, err = f.transfer(ctx, b, fit, dir)
		return err
	})
	if err != nil {
		return f.failed(ctx, b, fit, dir, volumeError(err))
	}
	booking.Keep(output.Taken(dir))
	if err := f.take(ctx, b, arrival{dir: dir, procs: arrived}); err != nil {
		return false, err
	}
	if len(missing) > 0 {
		return true, f.giveUpGone(ctx, b, missing)
	}
	return true, nil
}

// named gives the job that a transfer failed for its number in the HTCJob.
func (b batch) named(err error) error {
	bad, is := errors.AsType[*schedd.TransferError](err)
	if !is || b.run.Sent == "" {
		return err
	}
	numbers, unread := b.run.Numbers()
	number, known := numbers.At(bad.Proc)
	if unread != nil || !known {
		return bad.Err
	}
	renamed := *bad
	renamed.Proc = number
	return &renamed
}
