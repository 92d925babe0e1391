package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// release lets jobs leave the queue. It is no error if they have left it; it is one if they are those of an account
// that is not the current one any more. Failed releases are repeated on the HTCJob's next turn.
func (f *Fetcher) release(ctx context.Context, run ledger.Run, procs []int) error {
	b, found := batch{run: run}, false
	senders, err := backend.SendersOf(ctx, f.Credentials, backend.TargetOf(run))
	for _, as := range senders {
		o, failed := f.Schedd.Change(ctx, as, schedd.Release{Procs: b.of(procs)})
		found, err = found || o.Found, errors.Join(err, failed)
	}
	if err == nil && !found {
		err = f.belongToOthers(ctx, b, procs)
	}
	if err != nil {
		f.unreleased.add(run, procs)
		return fmt.Errorf("let fetched jobs leave the queue: %w", err)
	}
	return nil
}

// belongToOthers returns an error if jobs that have run to their end wait in the queue.
func (f *Fetcher) belongToOthers(ctx context.Context, b batch, procs []int) error {
	queued, err := f.queued(ctx, b)
	if err != nil {
		return err
	}
	var others []condor.Job
	for _, proc := range procs {
		if j, there := queued[proc]; there && j.Status == condor.Completed {
			others = append(others, j)
		}
	}
	return ofOthers(b.run, others, "leave the queue")
}

// releaseAgain repeats earlier releases that failed.
func (f *Fetcher) releaseAgain(ctx context.Context, key string) error {
	var errs []error
	for _, left := range f.unreleased.take(key) {
		errs = append(errs, f.release(ctx, left.run, left.procs))
	}
	return errors.Join(errs...)
}

// unreleased remembers jobs that could not be released, by the key of their HTCJob. Safe for concurrent use.
type unreleased struct {
	mu sync.Mutex
	m  map[string][]fetchedProcs
}

type fetchedProcs struct {
	run   ledger.Run
	procs []int
}

func (u *unreleased) add(run ledger.Run, procs []int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.m == nil {
		u.m = map[string][]fetchedProcs{}
	}
	key := keyOf(run)
	for i, left := range u.m[key] { // tried in vain before
		if left.run.UID == run.UID && left.run.Attempt == run.Attempt {
			all := slices.Sorted(slices.Values(slices.Concat(left.procs, procs)))
			u.m[key][i].procs = slices.Compact(all)
			return
		}
	}
	u.m[key] = append(u.m[key], fetchedProcs{run, procs})
}

func (u *unreleased) take(key string) []fetchedProcs {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := u.m[key]
	delete(u.m, key)
	return left
}
