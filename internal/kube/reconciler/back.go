package reconciler

import (
	"context"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// skew is how far the apiserver's clock may be from this one.
const skew = 5 * time.Minute

// IsBack reports whether an object for which neither the ledger nor its status knows a run had some before it was
// deleted: it is there again, as when an older state of etcd is put back.
func (r *Reconciler[O, S, K]) IsBack(ctx context.Context, object O) (bool, error) {
	created := object.GetCreationTimestamp().Time
	return ledger.Get(ctx, r.o.Ledger, func(tx *ledger.Tx) (bool, error) {
		return tx.WasSent(object.GetNamespace(), string(object.GetUID()), created.Add(-skew))
	})
}
