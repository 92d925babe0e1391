package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// What condor_submit sends of an attempt with parallelism is a launcher, which hands a factory of its jobs to the
// schedd. Until that is there, the attempt stays an intent: it is looked up by its tag like one whose submission was
// interrupted, and the launcher that is found says that nothing is to be sent.

// launching says that an attempt waits for its launcher.
func launching(cluster int) error {
	return &sending.Waiting{
		After:   time.Second,
		Reason:  "Launching",
		Message: fmt.Sprintf("job %d.0 at the schedd is about to hand over the jobs", cluster),
	}
}

// launched looks for the factory of an attempt of which only the launcher was found.
func (c *Controller) launched(
	ctx context.Context,
	t backend.Target,
	tag condor.Tag,
	f recovery.Finding,
) (recovery.Finding, error) {
	launcher := *f.Launcher
	id, err := backend.Questioner(ctx, c.Credentials, t)
	if err != nil {
		return f, err
	}
	factory := condor.Job{}
	err = c.sender.Schedd.Query(
		ctx,
		id,
		schedd.Query{Where: tag.Constraint(), Factories: true},
		func(found condor.Job) error {
			if found.Owner == launcher.Owner && found.Factory.Open {
				factory = found
			}
			return nil
		},
	)
	if err != nil {
		return f, fmt.Errorf("look for the jobs of launcher %s: %w", launcher.ID(), err)
	}
	why, unable := launcher.Unable()
	switch {
	case factory.Cluster > 0:
		f.Cluster, f.QDate, f.Launcher = condor.Cluster{ID: factory.Cluster, Procs: factory.Made}, factory.QDate, nil
		f.Pool = factory.Tag.Pool // the launcher has none
		return f, nil
	case unable:
		return f, &sending.Waiting{
			After:  time.Minute,
			Reason: "LauncherHeld",
			Message: fmt.Sprintf(
				"job %s, which is to hand over the jobs, is on hold: %s. Once that is mended, delete the HTCJob and apply it again; "+
					"who has a login at the schedd can condor_release it instead",
				launcher.ID(),
				why,
			),
		}
	case launcher.Over():
		return f, nil // its jobs were removed: the cross-check says so
	case launcher.Status == condor.Idle && c.Now().Sub(time.Unix(launcher.QDate, 0)) >= schedd.StartsWithin:
		return f, &sending.Waiting{
			After:  15 * time.Second,
			Reason: "LauncherNotStarted",
			Message: fmt.Sprintf(
				"job %s, which is to hand over the jobs, is idle, and starts by itself when there is room: %s",
				launcher.ID(),
				schedd.SchedulerLimits,
			),
		}
	}
	return f, launching(launcher.Cluster)
}

// stopMaking has the factory of a run that is stopped make no more jobs, and records that those which it has not made
// are not run, and are cancelled where a user had asked for that: only as far as these go, they get rows. A factory
// that has gone, or that these credentials may not stop, is left to the removal and to the cross-check.
func (c *Controller) stopMaking(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run) error {
	senders, err := backend.SendersOf(ctx, c.Credentials, backend.TargetOf(run))
	stop := schedd.StopMaking{Tag: condor.Tag{UID: run.UID, Attempt: run.Attempt}, Cluster: run.Cluster}
	var stopped schedd.Outcome
	for _, id := range senders {
		if stopped, err = c.sender.Schedd.Change(ctx, id, stop); err == nil {
			break
		}
	}
	if condor.KindOf(err) == condor.NotAuthorised {
		return nil
	}
	if err != nil {
		return fmt.Errorf("have HTCondor make no more jobs of attempt %d: %w", run.Attempt, err)
	}
	cancelled, _ := lifecycle.Cancels(job, &run)
	if !stopped.Found {
		return nil
	}
	rows, err := placesUpTo(run, cancelled)
	if err != nil {
		return err
	}
	as := crosscheck.Unmade(run.Stop, c.Now())
	return c.endUnmade(ctx, run, stopped.Made, rows, as, func(tx *ledger.Tx) error {
		return tx.EndApart(run, cancelled, as, crosscheck.UnmadeCancelled(c.Now()))
	})
}

// placesUpTo returns how many of the first procs of a run's cluster have all of these numbers.
func placesUpTo(run ledger.Run, numbers procset.Set) (places int, err error) {
	last := -1
	for _, n := range numbers.Ranges() {
		last = max(last, n)
	}
	if run.Sent == "" {
		return last + 1, nil
	}
	sent, err := run.Numbers()
	for first, end := range sent.Ranges() {
		places += max(0, min(end, last)-first+1)
	}
	return places, err
}

// endUnmade records that the factory of a run makes no more jobs than these, gives the first procs, so many, rows, and
// does something more in each transaction.
func (c *Controller) endUnmade(
	ctx context.Context,
	run ledger.Run,
	made, rows int,
	as ledger.Proc,
	then func(*ledger.Tx) error,
) (err error) {
	for more := true; more && err == nil; {
		err = c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
			if more, err = tx.EndUnmade(run, made, rows, as); err != nil {
				return err
			}
			return then(tx)
		})
	}
	if err != nil {
		return fmt.Errorf("record that jobs of attempt %d are not made: %w", run.Attempt, err)
	}
	return nil
}

// pace tells HTCondor what spec.parallelism, or what the pool leaves, has become. The ledger never says less than the
// factory may make: more is recorded before HTCondor is told, and less once it has shown what it had made by then. What
// interrupts this leaves it not known what HTCondor was told, and it is told again.
func (c *Controller) pace(ctx context.Context, s lifecycle.Situation) error {
	run := *s.Run
	var now admission.Share
	err := c.admission.Grant(ctx, run.Pool, run.UID, func(share *admission.Share) error {
		s.Pool = share
		now = s.Parallelism()
		return c.recordShare(ctx, run, admission.Share{Open: max(now.Open, run.Factory), Idle: ledger.IdleNotKnown})
	})
	if err != nil {
		return err
	}
	set := schedd.SetParallelism{
		Tag: condor.Tag{UID: run.UID, Attempt: run.Attempt}, Cluster: run.Cluster, Jobs: now.Open, Idle: now.Idle,
	}
	senders, err := backend.SendersOf(ctx, c.Credentials, backend.TargetOf(run))
	for _, id := range senders {
		_, failed := c.sender.Schedd.Change(ctx, id, set)
		err = errors.Join(err, failed)
	}
	if err == nil && (now.Open < run.Factory || now.Idle < run.FactoryIdle || run.FactoryIdle == ledger.IdleNotKnown) {
		_, err = c.checkRun(ctx, run.UID)
	}
	if err != nil {
		return fmt.Errorf(
			"tell HTCondor that %d jobs of attempt %d may be there at a time: %w", now.Open, run.Attempt, err)
	}
	return c.recordShare(ctx, run, now)
}

// recordShare records how many jobs of a run HTCondor was told that its factory may have.
func (c *Controller) recordShare(ctx context.Context, run ledger.Run, now admission.Share) error {
	return c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		there, err := tx.Run(run.UID, run.Attempt)
		if err != nil || there.Factory == 0 {
			return err
		}
		there.Factory, there.FactoryIdle = now.Open, now.Idle
		return tx.UpdateRun(there)
	})
}
