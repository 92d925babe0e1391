package fetch

import (
	"context"
	"errors"
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// TakeUp handles jobs that wait in the queue with their output and that nothing else handles: those recorded as fetched
// leave the queue, because htcd ended between the two steps; and of a suspended run restored from its object, output of
// jobs that had ended before is fetched. Those of attempts before a restored one, which the ledger has lost, leave the
// queue, too. It asks until this has succeeded once, and again after TakeUpAgain.
func (f *Fetcher) TakeUp(ctx context.Context) error {
	if f.Store.Root == "" || f.takenUp.Swap(true) {
		return nil
	}
	err := f.takeUp(ctx)
	if err != nil {
		f.takenUp.Store(false)
	}
	return err
}

// TakeUpAgain is called when a run has been restored.
func (f *Fetcher) TakeUpAgain() { f.takenUp.Store(false) }

func (f *Fetcher) takeUp(ctx context.Context) error {
	var runs []ledger.Run
	for _, state := range []ledger.RunState{ledger.Submitted, ledger.Removed} {
		err := f.Ledger.Read(ctx, func(tx *ledger.Tx) error {
			these, err := tx.Runs(ledger.RunFilter{State: state})
			for _, run := range these {
				if run.Cluster > 0 && f.fetchable(run) {
					runs = append(runs, run)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	var err error
	for _, g := range backend.Groups(runs) {
		err = errors.Join(err, f.takeUpGroup(ctx, g))
	}
	return err
}

// runKey identifies a run by what its ads carry.
type runKey struct {
	cluster int
	uid     string
	attempt int
}

// takeUpGroup asks about the runs of one group.
func (f *Fetcher) takeUpGroup(ctx context.Context, g backend.Group) error {
	id, err := backend.Questioner(ctx, f.Credentials, g.Target)
	if err != nil {
		return err
	}
	waiting := map[runKey][]condor.Job{}
	err = f.Schedd.Query(ctx, id, schedd.Query{Where: schedd.Waiting}, func(j condor.Job) error {
		key := runKey{j.Cluster, j.Tag.UID, j.Tag.Attempt}
		waiting[key] = append(waiting[key], j)
		return nil
	})
	if err != nil {
		return err
	}
	// one namespace's broken credentials are no reason to leave the jobs of others in the queue
	for _, run := range g.Runs {
		if these := waiting[runKey{run.Cluster, run.UID, run.Attempt}]; len(these) > 0 {
			err = errors.Join(err, f.takeUpRun(ctx, run, these))
		}
	}
	return errors.Join(err, f.releaseForgotten(ctx, g.Runs, waiting))
}

// releaseForgotten lets jobs leave the queue of attempts that the ledger has lost and that come before one that was
// restored.
func (f *Fetcher) releaseForgotten(
	ctx context.Context,
	runs []ledger.Run,
	waiting map[runKey][]condor.Job,
) (err error) {
	known, restored := map[runKey]bool{}, map[string]ledger.Run{}
	for _, run := range runs {
		known[runKey{uid: run.UID, attempt: run.Attempt}] = true
		if run.Restored && run.Attempt > restored[run.UID].Attempt {
			restored[run.UID] = run
		}
	}
	for key, jobs := range waiting {
		run, is := restored[key.uid]
		if !is || key.attempt >= run.Attempt || known[runKey{uid: key.uid, attempt: key.attempt}] {
			continue
		}
		run.Attempt, run.Cluster, run.Sent = key.attempt, key.cluster, ""
		var procs []int
		for _, j := range jobs {
			procs = append(procs, j.Proc)
		}
		slices.Sort(procs)
		err = errors.Join(err, f.release(ctx, run, procs))
	}
	return err
}

// takeUpRun releases those jobs of a run whose output must not be fetched. It reports when jobs of a suspended run have
// run to their end; for other runs the cross-check sees this.
func (f *Fetcher) takeUpRun(ctx context.Context, run ledger.Run, waiting []condor.Job) error {
	var done []int
	var ended []condor.Job
	err := f.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		done, ended = nil, nil
		for _, j := range waiting {
			p, err := tx.Proc(run.UID, run.Attempt, j.Number())
			if err != nil {
				return err
			}
			switch {
			case p.Fetched != ledger.NotFetched:
				done = append(done, j.Number())
			case p.JobStatus != int(condor.Completed) && run.State == ledger.Removed:
				ended = append(ended, j)
			}
		}
		return nil
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err == nil && len(ended) > 0 {
		err = f.Observer.Ended(ctx, run, ended)
	}
	if err != nil || len(done) == 0 {
		return err
	}
	slices.Sort(done)
	return f.release(ctx, run, done)
}
