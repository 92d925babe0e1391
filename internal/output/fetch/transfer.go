package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// transfer fetches output and returns what has arrived.
func (f *Fetcher) transfer(ctx context.Context, b batch, wanted []int, dir string) (arrived, missing []int, err error) {
	senders, err := backend.SendersOf(ctx, f.Credentials, backend.TargetOf(b.run))
	if err != nil {
		return nil, nil, err
	}
	missing = wanted
	for _, as := range senders {
		if err := f.Schedd.Transfer(ctx, as, b.of(missing), dir); err != nil {
			return nil, nil, b.named(err)
		}
		ask := missing
		missing = nil
		for _, proc := range ask {
			has, err := output.Arrived(dir, proc)
			switch {
			case err != nil:
				return nil, nil, err
			case has:
				arrived = append(arrived, proc)
			default:
				missing = append(missing, proc)
			}
		}
		if len(missing) == 0 {
			break
		}
	}
	return arrived, missing, nil
}

// failed continues after a failed transfer. A job whose files the schedd fails to send does not delay the others: it is
// tried again after growing pauses, and stays in the queue. Only files that the schedd says it does not have are given
// up: after hours, or after minutes if everything else of the job arrives each time.
func (f *Fetcher) failed(ctx context.Context, b batch, asked []int, dir string, why error) (more bool, err error) {
	proc, fewer := blame(why, asked)
	if fewer {
		f.pauses.smaller(keyOf(b.run), len(asked))
	}
	if proc < 0 {
		return false, fmt.Errorf("fetch: %w", why)
	}
	now := f.Now()
	waited := now.Sub(f.pauses.failed(b.run, proc, why, now).since)
	switch bad, named := errors.AsType[*schedd.TransferError](why); {
	case named && len(bad.Lacks) > 0 && waited >= goWithoutAfter:
		return true, f.take(ctx, b, arrival{dir, []int{proc}, bad.Lacks})
	case named && bad.Gone() && waited >= giveUpAfter:
		return true, f.giveUp(ctx, b.run, []int{proc}, goneMessage(bad))
	}
	return true, nil
}

// blame returns the job that made a transfer fail, or -1 if it was none or is unknown; then it may help to ask for
// fewer.
func blame(why error, asked []int) (proc int, fewer bool) {
	_, full := errors.AsType[*output.NoSpaceError](why)
	bad, named := errors.AsType[*schedd.TransferError](why)
	switch kind := condor.KindOf(why); {
	case full:
		return -1, true
	case named && strings.Contains(bad.Error(), "writing to file"): // the tool's own problem, not the job's
	case named:
		return bad.Proc, false
	case kind != condor.Unknown && kind != condor.Timeout:
	case len(asked) > 1: // one of them may be the cause, or there are too many
		return -1, true
	case kind == condor.Unknown:
		return asked[0], false
	}
	return -1, false
}

// volumeError distinguishes a full volume from other problems with it.
func volumeError(err error) error {
	if err != nil && (output.Full(err) || ledger.IsUnavailable(err)) {
		return &output.NoSpaceError{Message: err.Error()}
	}
	return err
}
