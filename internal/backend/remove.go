package backend

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
)

// Remove removes jobs of a target and returns those that have not left the queue yet. Neither the target's account nor the
// common one may remove those of them that are Untouched.
func (o Owners) Remove(ctx context.Context, t Target, constraint, reason string) (alive []schedd.Job, err error) {
	id, err := o.Credentials.Identity(ctx, t)
	if err != nil {
		return nil, err
	}
	if alive, err = o.removeAs(ctx, id, constraint, reason); err != nil {
		return nil, err
	}
	if len(Untouched(alive)) == 0 {
		return alive, nil
	}
	for _, earlier := range Senders(ctx, o.Credentials, t, id)[1:] {
		if alive, err = o.removeAs(ctx, earlier, constraint, reason); err != nil {
			return nil, err
		}
	}
	return alive, nil
}

// removeAs removes what this identity may remove and returns what is left in the queue.
func (o Owners) removeAs(ctx context.Context, id schedd.Identity, constraint, reason string) (alive []schedd.Job, err error) {
	err = o.Schedd.Remove(ctx, id, constraint, reason)
	if err != nil && schedd.KindOf(err) != schedd.NotAuthorised {
		return nil, err
	}
	err = o.Schedd.Queue(ctx, id, constraint, func(j schedd.Job) error { alive = append(alive, j); return nil })
	return alive, err
}
