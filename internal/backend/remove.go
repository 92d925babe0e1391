package backend

import (
	"context"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

// Left is what is left in the queue after a removal.
type Left struct {
	Removed int          // how many jobs are marked as removed: they will leave by themselves
	Others  []schedd.Job // those that condor_rm passed over; only ID, Status and Owner are known

	Took time.Duration // how long the schedd has needed to tell
}

// Remove removes jobs of a target and returns what has not left the queue yet. Neither the target's account nor the
// common one may remove the Others of it.
func (o Owners) Remove(ctx context.Context, t Target, constraint, reason string) (left Left, err error) {
	id, err := o.Credentials.Identity(ctx, t)
	if err != nil {
		return Left{}, err
	}
	if left, err = o.removeAs(ctx, id, constraint, reason); err != nil {
		return Left{}, err
	}
	if len(left.Others) == 0 {
		return left, nil
	}
	for _, earlier := range Senders(ctx, o.Credentials, t, id)[1:] {
		if left, err = o.removeAs(ctx, earlier, constraint, reason); err != nil {
			return Left{}, err
		}
	}
	return left, nil
}

// removeAs removes what this identity may remove, which is marked as removed when condor_rm returns.
func (o Owners) removeAs(ctx context.Context, id schedd.Identity, constraint, reason string) (left Left, err error) {
	err = o.Schedd.Remove(ctx, id, fmt.Sprintf("(%s) && JobStatus =!= %d", constraint, schedd.Removed), reason)
	if err != nil && schedd.KindOf(err) != schedd.NotAuthorised {
		return Left{}, err
	}
	began := time.Now()
	err = o.Schedd.Present(ctx, id, constraint, func(j schedd.Job) error {
		if j.Status == schedd.Removed {
			left.Removed++
		} else {
			left.Others = append(left.Others, j)
		}
		return nil
	})
	left.Took = time.Since(began)
	return left, err
}
