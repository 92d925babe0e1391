package sending

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Ledger is where runs are recorded.
type Ledger interface {
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Along writes what only one kind of objects has in the transaction that records what became of a run.
type Along func(tx *ledger.Tx, run ledger.Run) error

func (a Along) write(tx *ledger.Tx, run ledger.Run) error {
	if a == nil {
		return nil
	}
	return a(tx, run)
}

// named is what people call a run.
func named(run ledger.Run) string {
	if run.Kind == ledger.Workflows {
		return fmt.Sprintf("DAG %d", run.Attempt)
	}
	return fmt.Sprintf("attempt %d", run.Attempt)
}

// Submitted turns an intent into a submitted run with a row for every proc, and returns it. The time of submission is
// now unless the run has one.
func (s *Sender) Submitted(
	ctx context.Context,
	run ledger.Run,
	cluster condor.Cluster,
	along Along,
) (ledger.Run, error) {
	run.State, run.Reason, run.Message = ledger.Submitted, "", crosscheck.StopMessage(run.Stop)
	run.Cluster = cluster.ID
	if run.Submitted.IsZero() {
		run.Submitted = s.Now()
	}
	err := s.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := tx.UpdateIntent(run); err != nil {
			return err
		}
		if run.Factory == 0 || run.Kind == ledger.Workflows { // otherwise its procs get rows when they were made
			// The rows exist already if an htcd that no longer led has reopened the intent; they stay as they are.
			if err := tx.InsertProcs(run, run.Procs); err != nil && !errors.Is(err, ledger.ErrExists) {
				return err
			}
		}
		return along.write(tx, run)
	})
	if err != nil {
		return run, fmt.Errorf("record cluster %d: %w", cluster.ID, err)
	}
	s.over(run)
	return run, nil
}

// Refuse records that a description is wrong, or that an input will not come. It is not tried again until the spec
// changes. Any other error is returned as it is.
func (s *Sender) Refuse(ctx context.Context, run ledger.Run, why error) error {
	reason := "Refused"
	if _, is := errors.AsType[*inputs.Failed](why); is {
		reason = lifecycle.ReasonInputFailed
	} else if condor.KindOf(why) != condor.Refused {
		return why
	}
	return s.GiveUp(ctx, run, reason, why.Error())
}

// GiveUp records that a run will never be sent, and why.
func (s *Sender) GiveUp(ctx context.Context, run ledger.Run, reason, message string) error {
	run.State, run.Reason, run.Message, run.Ended = ledger.Refused, reason, message, s.Now()
	run.Confirmed = run.Kind == ledger.Workflows
	run.PoolSpec = "" // nothing is sent by it
	err := s.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := tx.RefuseRun(run); err != nil {
			return err
		}
		return s.Refused.write(tx, run)
	})
	if err != nil {
		return fmt.Errorf("record refusal: %w", err)
	}
	s.over(run)
	return nil
}

// Withdraw gives up a run that the schedd certainly does not have, because it is no longer wanted.
func (s *Sender) Withdraw(ctx context.Context, run ledger.Run) error {
	run.State, run.Stop, run.Reason = ledger.Removed, crosscheck.StopSuspended, crosscheck.StopSuspended
	run.Message = crosscheck.StopMessage(crosscheck.StopSuspended)
	run.Ended, run.Confirmed = s.Now(), true
	if err := s.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.UpdateIntent(run) }); err != nil {
		return fmt.Errorf("record that %s is not sent: %w", named(run), err)
	}
	s.over(run)
	return nil
}

// over forgets the submissions of a run that is no longer an intent, and when it was not found, and removes what is
// staged of it.
func (s *Sender) over(run ledger.Run) {
	s.Tries.Clear(run)
	s.Absences.Clear(run.UID)
	if err := os.RemoveAll(run.TempDir); err != nil { // the next start tries again
		s.Log.Warn().Err(err).Str("job", run.Namespace+"/"+run.Name).Msg("files that nobody needs are still staged")
	}
}

// BeginStop records that a run is to be stopped and why. begun is false if it has ended, or is being stopped already.
func (s *Sender) BeginStop(
	ctx context.Context,
	run ledger.Run,
	reason, message string,
) (now ledger.Run, begun bool, err error) {
	err = s.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
		if now, err = tx.Run(run.UID, run.Attempt); err != nil {
			return err
		}
		if begun = now.State == ledger.Submitted && now.Stop == ""; !begun {
			return nil
		}
		now.Stop, now.Reason, now.Message = reason, reason, message
		now.Confirmed = now.Confirmed && now.Kind == ledger.Workflows // DAGMan's job may end before its nodes
		return tx.UpdateRun(now)
	})
	if err != nil {
		return now, false, fmt.Errorf("record that %s is stopped: %w", named(run), err)
	}
	return now, begun, nil
}

// Forget drops the rows, the output and the staged files of an object: staged files first, since the rows say where
// they are, and output together with the rows, so that no fetch can add to it afterwards. Output in its place may
// belong to a younger object of its name.
func (s *Sender) Forget(ctx context.Context, namespace, name, uid string) error {
	if err := s.unstageAll(uid); err != nil {
		return err
	}
	err := s.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := s.dropOutput(tx, namespace, name, uid); err != nil {
			return err
		}
		return tx.DeleteRuns(uid)
	})
	// Also after an error: it may be that of a full volume, which has room for the rest once this is removed.
	if err := s.Output.Sweep(false); err != nil {
		s.Log.Warn().Err(err).Str("job", namespace+"/"+name).Msg("dropped output is still on the disk")
	}
	if err != nil {
		return fmt.Errorf("drop rows and output: %w", err)
	}
	s.Tries.Forget(uid)
	s.Absences.Clear(uid)
	s.Absences.Clear(endedOf(uid))
	return nil
}

func (s *Sender) dropOutput(tx *ledger.Tx, namespace, name, uid string) error {
	if s.Output.Root == "" {
		return nil
	}
	runs, err := tx.Runs(ledger.RunFilter{Kind: s.Runs, Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.UID != uid {
			return nil
		}
	}
	return s.Output.Drop(namespace, name)
}

// LaterThan reports whether one of the schedds has a later run of the object than this one, the newest in the ledger.
// That none has, two answers must say, as of an attempt that may be sent again: it is a *Waiting until then.
func (s *Sender) LaterThan(ctx context.Context, run ledger.Run, places []backend.Target) (bool, error) {
	asked := s.Now()
	all, err := s.SearchAll(ctx, places, condor.LaterConstraint(run.UID, run.Attempt), "")
	if err != nil {
		return false, fmt.Errorf("look for what was sent after %s: %w", named(run), err)
	}
	if _, later := Newest(all); later > 0 {
		s.Absences.Clear(run.UID)
		return true, nil
	}
	// With other credentials the ledger may have lost what was sent with these. Otherwise a forged tag would be enough.
	if i := slices.IndexFunc(all, func(at At) bool { return len(at.Others) > 0 }); i >= 0 && run.Restored {
		return false, s.othersCluster(all[i].Others[0])
	}
	err = s.Missing(ctx, places, run, asked)
	if wait, is := errors.AsType[*Waiting](err); is {
		wait.Condition = v1alpha1.ConditionSubmitted
	} else if err == nil {
		s.Absences.Clear(run.UID)
	}
	return false, err
}
