package reconciler

import (
	"context"
	"errors"
	"slices"

	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/pool"
)

// CredentialsOf returns a run whose jobs ask for their credentials. While it has jobs, these are those that of returns
// for its object, as it was sent by a pool; false: they get none.
func CredentialsOf[O Sent, S, K any](
	ctx context.Context,
	r *Reconciler[O, S, K],
	uid string,
	attempt int,
	of func(object O, by pool.Pool) ([]jobcredentials.Credential, bool),
) (found jobcredentials.Run, err error) {
	var object, none O
	var run ledger.Run
	var by pool.Pool
	err = r.o.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if run, err = tx.Run(uid, attempt); err != nil {
			return err
		}
		if object = r.Get(run.Namespace + "/" + run.Name); object == none || string(object.GetUID()) != uid {
			object = none
			return nil
		}
		by, err = r.o.Chooses().Began(tx, r.o.Owned.AsJob(object), run)
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return found, jobcredentials.ErrUnknownRun
	case err != nil:
		return found, err
	case run.State == ledger.Intent:
		return found, errors.New("whether this run was sent is not recorded yet")
	}
	found.Namespace, found.CallbackHash = run.Namespace, run.TokenHash
	if object != none && run.State == ledger.Submitted && run.Ended.IsZero() && object.SpecHash() == run.SpecHash {
		found.Credentials, found.Active = of(object, by)
		found.Credentials = slices.Clip(found.Credentials)
	}
	return found, nil
}
