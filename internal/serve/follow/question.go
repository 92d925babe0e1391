package follow

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errUnasked is that of a question for which there are too many others.
var errUnasked = apierrors.NewTooManyRequests(
	"HTCondor is asked about too many jobs at once, and your share of that is used up: try again",
	1,
)

// question has p ask HTCondor as soon as it may, or fails if that takes too long. Each question costs the schedd time
// that it takes from all jobs, so its place is free again a Pause after its end.
func (r *Reader) question(ctx context.Context, p requester, patience time.Duration, ask func() error) error {
	for late := time.Now().Add(patience); !r.questions.take(p, 1); {
		if time.Now().After(late) {
			return errUnasked
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.o.Pause / 4):
		}
	}
	defer time.AfterFunc(r.o.Pause, func() { r.questions.give(p, 1) })
	return ask()
}
