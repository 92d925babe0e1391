package sending

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

// KeptAttempts is how many attempts before the newest keep their rows in the ledger. Their output is dropped before.
const KeptAttempts = 10

// Sender does it for the runs of one kind of objects. Set its fields before its first use.
type Sender struct {
	Kind      string      // of the objects, for people
	Runs      ledger.Kind // of their runs
	Ledger    Ledger
	Output    output.Store // where their output is kept; nowhere if it has no root
	Schedd    backend.Schedd
	Answering *backend.Answering
	Owners    backend.Owners
	Staging   string         // the directory above those of the runs
	Shares    *output.Shares // of its volume
	Limits    *backend.Limits
	Tries     *recovery.Tries
	Absences  *recovery.Absences
	// Newest returns the last job that is known to have left a target's queue, "" if none is.
	Newest func(t backend.Target) string
	// NewestNow asks for it.
	NewestNow func(ctx context.Context, id schedd.Identity) (string, error)
	Repaired  func() // a half-spooled cluster was removed
	Refused   Along  // a run is refused; nil: nothing more is written
	Now       func() time.Time
	Log       zerolog.Logger

	told   sync.Map // by backend.Target
	asking singleflight.Group
}

// MayBegin returns nil if an intent of so many jobs may be written: every one that an outage leaves open must be looked
// up twice afterwards, so none is begun while the schedd does not answer, nor, but for one at a time, while it is at a
// limit of its own.
func (s *Sender) MayBegin(ctx context.Context, id schedd.Identity, jobs int) error {
	if state := s.Answering.State(id.Endpoint); !state.Asked || state.Down {
		if _, err := s.Schedd.Ping(ctx, id, schedd.Reading); err != nil {
			return fmt.Errorf("ask before the submission: %w", err)
		}
	}
	return s.Limits.Ask(id, jobs, s.Now())
}

// TakesNodes returns an error of kind schedd.Refused if there are jobs of several nodes, and the pool has no machines
// for them.
func (s *Sender) TakesNodes(ctx context.Context, id schedd.Identity, several bool) error {
	if !several {
		return nil
	}
	err := s.Schedd.TakesNodes(ctx, id)
	if err != nil && condor.KindOf(err) != condor.Refused {
		err = fmt.Errorf("ask for machines that take jobs of several nodes: %w", err)
	}
	return err
}

// Room books room for what is to be staged of a run: its sandbox and its inputs; some of these may be there already.
// Its error says what the run waits for. The caller calls leave when nothing of it is staged any more.
func (s *Sender) Room(
	run ledger.Run,
	sandbox submit.Sandbox,
	inputs, already output.Room,
) (leave func(), err error) {
	want := inputs.Plus(output.FileRoom(0))
	if err := sandbox.Each(func(bytes int64) { want = want.Plus(output.FileRoom(bytes)) }); err != nil {
		return nil, s.StageError(err)
	}
	booking, left, err := s.Shares.BookAll(run.Namespace, want)
	if err != nil {
		return nil, s.StageError(err)
	}
	if booking == nil {
		return nil, noRoom(run.Namespace, left, want)
	}
	booking.In(run.TempDir, already)
	return booking.Leave, nil
}

// noRoom says why nothing is staged. The free space changes all the time, so the text omits it.
func noRoom(namespace string, left output.Left, want output.Room) error {
	what := fmt.Sprintf("the files to be submitted, %d KiB in %d files,", want.Bytes>>10, want.Files)
	switch {
	case left.Free.Holds(want):
		return &output.NoSpaceError{
			Message: fmt.Sprintf(
				"%s wait for room: with them namespace %s %s; make it several smaller ones, or have the volume enlarged",
				what,
				namespace,
				output.OverShare,
			),
		}
	case left.Unbooked().Holds(want):
		return &output.NoSpaceError{Message: what + " wait for room until other submissions are over"}
	}
	return &output.NoSpaceError{
		Message: fmt.Sprintf(
			"%s wait for room: the volume has none beside the %d KiB and %d files that submissions leave free (half of --keep-free); %s",
			what,
			left.Reserve.Bytes>>10,
			left.Reserve.Files,
			output.MoreRoom,
		),
	}
}

// Stage writes what is to be sent with a run, beside its staged inputs. If that fails, nothing of either is left.
func (s *Sender) Stage(run ledger.Run, sandbox submit.Sandbox, tokens ...string) error {
	err := stage(run.TempDir, sandbox, tokens)
	if err == nil {
		return nil
	}
	s.Tries.Unstaged(run)
	err = s.StageError(err) // says how much was free
	if left := os.RemoveAll(run.TempDir); left != nil {
		s.Log.Warn().
			Err(left).
			Str("job", run.Namespace+"/"+run.Name).
			Msg("what was staged in part is still on the volume")
	}
	return err
}

// StageError says why the files of a submission cannot be written, unless err says what its inputs wait for.
func (s *Sender) StageError(err error) error {
	_, waits := errors.AsType[*inputs.Waiting](err)
	_, full := errors.AsType[*output.NoSpaceError](err)
	if waits || full || errors.Is(err, inputs.ErrStopped) {
		return err
	}
	if !output.Full(err) {
		return fmt.Errorf("write the files to be submitted: %w", err)
	}
	left := "how much is free is not known"
	if free, _, err := output.Volume(s.Staging); err == nil {
		left = fmt.Sprintf("%d KiB and %d files are free", free.Bytes>>10, free.Files)
	}
	return &output.NoSpaceError{
		Message: fmt.Sprintf(
			"the volume is full, %s: the files to be submitted cannot be written; %s: %v",
			left,
			output.MoreRoom,
			err,
		),
	}
}

// Send runs condor_submit for a run that is staged and whose intent is in the ledger. An error of kind schedd.Refused
// is final. After any, only the inputs are still staged: they are sent as they were, and everything else is rendered
// again.
func (s *Sender) Send(ctx context.Context, id schedd.Identity, run ledger.Run) (condor.Cluster, error) {
	_, _ = s.daemon(ctx, backend.TargetOf(run), time.Time{}) // once, so that another queue is known as such afterwards
	s.Tries.Begin(run, s.since(ctx, id, run))
	cluster, err := s.transmit(ctx, id, run)
	s.Tries.End(run, s.Now())
	if err != nil && condor.KindOf(err) != condor.Refused {
		err = s.unsuccessful(ctx, id, run, err)
	}
	if err != nil {
		if left := unstage(run.TempDir); left != nil {
			s.Log.Warn().Err(left).Str("job", run.Namespace+"/"+run.Name).Msg("what could not be sent is still staged")
		}
		return cluster, err
	}
	procs := submit.Sends(run.Procs, run.Factory)
	s.Limits.Over(id, procs)
	if cluster.Procs != procs {
		return cluster, fmt.Errorf("submit: cluster %d has %d procs instead of %d", cluster.ID, cluster.Procs, procs)
	}
	return cluster, nil
}

// transmit runs condor_submit. A refusal at the commit may be about another client's transaction that was interrupted
// before, so condor_submit runs once more, and the schedd is believed if it repeats itself.
func (s *Sender) transmit(ctx context.Context, id schedd.Identity, run ledger.Run) (condor.Cluster, error) {
	cluster, err := s.Schedd.Submit(ctx, id, run.TempDir)
	first, ok := errors.AsType[*condor.Error](err)
	if !ok || !first.AtCommit || first.Kind != condor.Refused {
		return cluster, err
	}
	cluster, err = s.Schedd.Submit(ctx, id, run.TempDir)
	if second, ok := errors.AsType[*condor.Error](err); ok && second.AtCommit && !second.Repeats(first) {
		doubted := *second
		doubted.Kind = condor.Unknown
		err = &doubted
	}
	return cluster, err
}

// unsuccessful decides what a failed submission means. A refusal is final. So is any other error of condor_submit that
// was repeated often enough, unless its cause is something that others have done or can mend.
func (s *Sender) unsuccessful(ctx context.Context, id schedd.Identity, run ledger.Run, err error) error {
	t := s.Tries.Failed(run, err)
	if t.Unsent {
		if err := s.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.SetUnsent(run) }); err != nil {
			s.Log.Warn().Err(err).Str("job", run.Namespace+"/"+run.Name).Msg("a refusal is not recorded")
		}
	}
	failed := fmt.Errorf("submit: %w", err)
	e, own := errors.AsType[*condor.Error](err)
	switch {
	case condor.KindOf(err) == condor.Limit:
		s.Limits.Met(id, submit.Sends(run.Procs, run.Factory), failed, s.Now()) // so those that wait say the same
	case own && e.Kind == condor.Unknown && e.ExitCode > 0 && e.Cluster == nil && t.Alike >= mostAlike:
		return &condor.Error{
			Kind:   condor.Refused,
			Stderr: fmt.Sprintf("condor_submit failed %d times with the same words: %v", t.Alike, err),
		}
	}
	return &Paused{t.Pause(), failed}
}

// since returns the last job to leave the queue, so that a later search for the submission that begins now need not
// read the history beyond it; empty: not known. The schedd is asked for it only if there is something to look for.
func (s *Sender) since(ctx context.Context, id schedd.Identity, run ledger.Run) string {
	newest := s.Newest(backend.TargetOf(run))
	if t := s.Tries.Get(run); newest == "" && t.Alike > 0 && !t.Unsent {
		newest, _ = s.NewestNow(ctx, id) // without it the whole history is read
	}
	return newest
}

// mostAlike is how often an attempt is sent that fails with the same message: for some eight hours, in which an
// administrator can mend what is broken for everybody.
const mostAlike = 100
