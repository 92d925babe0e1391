package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
)

// Owner does what a Sweep needs done for a kind of objects.
type Owner struct {
	// Exists asks the apiserver whether the object with that UID is still there.
	Exists func(ctx context.Context, namespace, name, uid string) (bool, error)
	// Remove removes from HTCondor what these runs of an object have sent.
	Remove func(ctx context.Context, uid string, runs []ledger.Run) error
	// Forget drops its rows, output and staged files.
	Forget func(ctx context.Context, namespace, name, uid string) error
}

// Sweep removes what the ledger has under a key for objects that are gone: their finalizer was removed by hand, or they
// were refused before they got one. A *Kept says that some vanished together with many others and are kept.
func (g *Guard) Sweep(ctx context.Context, key string, runs []ledger.Run, o Owner) error {
	byUID := map[string][]ledger.Run{}
	for _, run := range runs {
		byUID[run.UID] = append(byUID[run.UID], run)
	}
	var kept error
	var failed []error
	for uid, own := range byUID {
		err := g.sweep(ctx, key, uid, own, o)
		if IsKept(err) {
			kept = err
		} else if err != nil {
			failed = append(failed, err)
		}
	}
	return cmp.Or(errors.Join(failed...), kept)
}

// sweep does it for one object.
func (g *Guard) sweep(ctx context.Context, key, uid string, own []ledger.Run, o Owner) error {
	exists, err := o.Exists(ctx, own[0].Namespace, own[0].Name, uid)
	if err != nil {
		return fmt.Errorf("look for %s: %w", key, err)
	}
	if exists {
		return nil
	}
	if AnySent(own) {
		if err := g.MayRemove(ctx, key, uid); err != nil {
			return err
		}
		if err := o.Remove(ctx, uid, own); err != nil {
			return err
		}
	}
	vanished := AnySent(own) && !g.Deletions.seen(key, uid)
	if err := o.Forget(ctx, own[0].Namespace, own[0].Name, uid); err != nil {
		return err
	}
	if vanished {
		g.Few(own[0])
	}
	return nil
}

// AnySent reports whether condor_submit may have run for any of them.
func AnySent(runs []ledger.Run) bool {
	return slices.ContainsFunc(runs, func(run ledger.Run) bool { return run.State != ledger.Refused })
}
