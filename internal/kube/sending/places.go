package sending

import (
	"context"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Places returns where an attempt may be of which the ledger does not know where it was sent: at t, at every schedd of
// which one was chosen, and at the one that the status names ("" if it names none).
func Places(t backend.Target, choice []string, told string) []backend.Target {
	places := []backend.Target{t}
	for _, name := range append(slices.Clone(choice), told) {
		at := t
		at.Endpoint.Schedd = name
		if name != "" && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	return places
}

// At is what was found at one place.
type At struct {
	backend.Target
	Found
}

// SearchAll is Search at several places. All of them must answer: what one does not have, the next may.
func (s *Sender) SearchAll(
	ctx context.Context,
	places []backend.Target,
	these condor.Constraint,
	since string,
) ([]At, error) {
	var all []At
	for _, t := range places {
		id, err := s.Owners.Credentials.Identity(ctx, t)
		if err != nil {
			return nil, err
		}
		f, err := s.Search(ctx, t, id, these, since)
		if err != nil && len(places) > 1 {
			err = fmt.Errorf("at schedd %s, one of %d where it may be: %w", t.Endpoint, len(places), err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, At{t, f})
	}
	return all, nil
}

// Newest returns the place of the latest attempt of which there is a job of htcd's, and its number; 0 if there is none.
func Newest(all []At) (t backend.Target, attempt int) {
	for _, at := range all {
		if n := at.Newest(); n > attempt {
			t, attempt = at.Target, n
		}
	}
	return t, attempt
}

// Where returns what was found of an attempt at the place that has a job of htcd's; without one, where others' jobs
// carry its tag, or else at the first.
func Where(all []At, attempt int) At {
	found := make([]At, len(all))
	for i, at := range all {
		found[i] = At{at.Target, at.Found.Of(attempt)}
	}
	if i := slices.IndexFunc(found, func(at At) bool { return len(at.Queued)+len(at.Left) > 0 }); i >= 0 {
		return found[i]
	}
	return found[max(0, slices.IndexFunc(found, func(at At) bool { return len(at.Others) > 0 }))]
}
