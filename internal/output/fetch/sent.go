package fetch

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// noteSent records what the execute nodes have written to URLs, as far as the procs' output says it. This is durable
// before the output is moved into place, where the lists are no longer.
func (f *Fetcher) noteSent(ctx context.Context, b batch, a arrival) error {
	var all []ledger.Written
	for _, proc := range a.procs {
		sent, err := output.SentBy(a.dir, proc)
		if err != nil {
			return volumeError(fmt.Errorf("read what was sent elsewhere: %w", err))
		}
		for _, s := range sent {
			all = append(
				all,
				ledger.Written{
					Destination: ledger.Destination{Number: s.Number},
					Proc:        proc,
					Size:        s.Size,
					Digest:      s.Digest,
				},
			)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return f.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if wanted, err := stillWanted(tx, b.run); err != nil || !wanted {
			return err
		}
		for _, w := range all {
			if err := tx.SetWritten(b.run.UID, b.run.Attempt, w); err != nil {
				return err
			}
		}
		return nil
	})
}
