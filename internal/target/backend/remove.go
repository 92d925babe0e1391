package backend

import (
	"context"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Left is what is left in the queue after a removal.
type Left struct {
	Removed int          // how many jobs are marked as removed: they will leave by themselves
	Others  []condor.Job // those that condor_rm passed over; only ID, Status and Owner are known

	removedOf map[string]int // by Owner

	Took time.Duration // how long the schedd has needed to tell
}

// Remove removes jobs of a target and returns what has not left the queue yet. Neither the target's account nor the
// common one may remove the Others of it.
func (o Owners) Remove(ctx context.Context, t Target, these condor.Constraint, reason string) (Left, error) {
	return o.removeAsSenders(ctx, t, func(id schedd.Identity) (left Left, err error) {
		began, err := o.condorRm(ctx, id, these, reason)
		if err != nil {
			return Left{}, err
		}
		there := schedd.Query{Where: these, Presence: true}
		err = o.Schedd.Query(ctx, id, there, func(j condor.Job) error { left.add(j); return nil })
		left.Took = time.Since(began)
		return left, err
	})
}

// RemoveDeleted is Remove for all jobs of an object that has been deleted. Several such removals go together, but
// others do not wait for one of many jobs.
func (o Owners) RemoveDeleted(ctx context.Context, t Target, uid, reason string, many bool) (Left, error) {
	return o.removeAsSenders(ctx, t, func(id schedd.Identity) (Left, error) {
		with := together{id, reason}
		if many {
			left, err := o.removeTagged(ctx, with, uid)
			return left[uid], err
		}
		return o.deletions.join(ctx, o, with, uid)
	})
}

// removeAsSenders removes jobs as the target's account and, if that leaves some of others, as the common one.
func (o Owners) removeAsSenders(
	ctx context.Context,
	t Target,
	remove func(id schedd.Identity) (Left, error),
) (left Left, err error) {
	id, err := o.Credentials.Identity(ctx, t)
	if err != nil {
		return Left{}, err
	}
	if left, err = remove(id); err != nil {
		return Left{}, err
	}
	if len(left.Others) == 0 {
		return left, nil
	}
	for _, earlier := range Senders(ctx, o.Credentials, t, id)[1:] {
		if left, err = remove(earlier); err != nil {
			return Left{}, err
		}
	}
	return left, nil
}

// condorRm removes what this identity may remove, which is marked as removed when condor_rm returns, and returns when
// it did.
func (o Owners) condorRm(
	ctx context.Context,
	id schedd.Identity,
	these condor.Constraint,
	reason string,
) (returned time.Time, err error) {
	_, err = o.Schedd.Change(ctx, id, schedd.Remove{Where: these.NotIn(condor.Removed), Reason: reason})
	if err != nil && condor.KindOf(err) == condor.NotAuthorised {
		err = nil // what is left shows what it may not
	}
	return time.Now(), err
}

// Of returns what is left of the jobs of these accounts, and the Others of other accounts.
func (l Left) Of(accounts []string) (of Left, strange []condor.Job) {
	of = Left{Took: l.Took}
	for owner, n := range l.removedOf {
		if slices.Contains(accounts, owner) {
			of.Removed += n
		}
	}
	for _, j := range l.Others {
		if slices.Contains(accounts, j.Owner) {
			of.Others = append(of.Others, j)
		} else {
			strange = append(strange, j)
		}
	}
	return of, strange
}

// add counts a job that is in the queue after a removal.
func (l *Left) add(j condor.Job) {
	if j.Status == condor.Removed {
		l.Removed++
		if l.removedOf == nil {
			l.removedOf = map[string]int{}
		}
		l.removedOf[j.Owner]++
	} else {
		l.Others = append(l.Others, j)
	}
}
