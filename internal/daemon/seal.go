package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// sealAnnotation of the Lease describes the ledger's file as the last htcd has closed it. It is there only while no
// htcd works: a copy of the file that is put back is another one.
const sealAnnotation = "htc.cern.ch/ledger"

// sealOf describes a closed ledger's file; empty: there is none, or it was not closed.
func sealOf(path string) string {
	if log, err := os.Stat(
		path + "-wal",
	); err == nil && log.Size() > 0 ||
		err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	file, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %s", file.Size(), file.ModTime().UTC().Format(time.RFC3339Nano))
}

// sealed runs work on the ledger, and says in the Lease what its file was before and after.
func (d *daemon) sealed(ctx context.Context, identity string, work func(context.Context) error) error {
	if err := d.breakSeal(ctx); err != nil {
		return fmt.Errorf("the lease %s/%s: %w", d.o.OwnSpace, d.o.LeaseName, err)
	}
	err := work(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.lease.renewDeadline)
	defer cancel()
	// What has taken the place of the ledger was not closed by this htcd.
	if seal := sealOf(d.o.LedgerFile()); seal != "" && !needsReexec(err) {
		// Without it, statuses are believed at the next start.
		_ = d.changeLease(ctx, func(lease *coordinationv1.Lease) bool {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, sealAnnotation, seal)
			return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == identity
		})
	}
	return err
}

// breakSeal finds out whether the ledger is as the last htcd has closed it.
func (d *daemon) breakSeal(ctx context.Context) error {
	seal := sealOf(d.o.LedgerFile())
	return d.changeLease(ctx, func(lease *coordinationv1.Lease) bool {
		was, is := lease.Annotations[sealAnnotation]
		d.sameLedger = is && was == seal
		delete(lease.Annotations, sealAnnotation)
		return is
	})
}

// changeLease writes the Lease if change reports that there is something to write. The election writes it, too.
func (d *daemon) changeLease(ctx context.Context, change func(*coordinationv1.Lease) bool) error {
	leases := d.core.CoordinationV1().Leases(d.o.OwnSpace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := leases.Get(ctx, d.o.LeaseName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil && change(lease) {
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		return err
	})
}
