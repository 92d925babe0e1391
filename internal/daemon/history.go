package daemon

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
)

// mostHistory is how many deleted attempts are kept: some 40 MB of the ledger file.
const mostHistory = 100_000

// betweenForgetting is how often too old ones are looked for.
const betweenForgetting = 10 * time.Minute

// forget keeps the history within its bounds, until ctx ends.
func (d *daemon) forget(ctx context.Context, book reconciler.Ledger) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for more := true; more; {
			err := book.Write(ctx, func(tx *ledger.Tx) (err error) {
				more, err = tx.ForgetHistory(time.Now().Add(-d.o.HistoryKept), mostHistory)
				return err
			})
			if err != nil {
				if ctx.Err() == nil {
					d.log.Warn().Err(err).Msg("the history cannot be shortened")
				}
				return
			}
		}
	}, betweenForgetting)
}
