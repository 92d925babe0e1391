package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
)

// synced is an informer that has seen everything.
type synced struct{ cache.SharedIndexInformer }

func (synced) HasSynced() bool { return true }

// stopping is a ledger during one of whose reads htcd is asked to end.
type stopping struct {
	reconciler.Ledger
	left int
	stop context.CancelFunc
}

func (s *stopping) Read(ctx context.Context, f func(*ledger.Tx) error) error {
	if s.left--; s.left == 0 {
		s.stop()
	}
	return s.Ledger.Read(ctx, f)
}

func TestAnHtcdThatIsAskedToEndWhileItBeginsHasNotFailed(t *testing.T) {
	t.Parallel()
	reads := 0
	for n := 1; n <= max(reads, 1); n++ {
		ctx, stop := context.WithCancel(t.Context())
		book := &stopping{stop: stop}
		w := newWorldWithOutput(t, func(o *Options) {
			book.Ledger, o.Ledger = o.Ledger, book
			o.Informer = synced{o.Informer}
		})
		if n == 1 { // how many reads there are
			book.left = -1
			require.NoError(t, w.fetcher.Resume(ctx))
			require.NoError(t, w.pusher.Resume(ctx))
			require.NoError(t, w.adoptOrphans(ctx))
			reads = -1 - book.left
			require.Positive(t, reads)
		}
		book.left = n
		require.NoError(t, w.Run(ctx), "read %d", n)
		require.Error(t, ctx.Err())
	}
}
