package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestAChangeWhileAMirrorIsHeldAgainstHTCondorIsNoDifference(t *testing.T) {
	is := func(s condor.JobStatus) map[string]condor.JobStatus { return map[string]condor.JobStatus{"1.0": s} }
	none := map[string]condor.JobStatus{}
	require.Empty(t, differing(is(1), is(2), is(2)))
	require.Empty(t, differing(is(1), is(2), is(5)))
	require.Empty(t, differing(none, is(1), is(1)), "it has just been sent")
	require.Empty(t, differing(is(2), is(2), is(2)))
	require.Equal(t, []string{"1.0 is Running, and not Idle"}, differing(is(1), is(2), is(1)))
	require.Equal(t, []string{"1.0 is Running, and not not in the queue"}, differing(none, is(2), none))
	require.Equal(t, []string{"1.0 is not in the queue, and not Running"}, differing(is(2), none, is(2)))
}

// liar is a mirror of a schedd that may be behind, hide jobs, fail, or be away, as it comes.
type liar struct {
	*pair
	shown *scheddtest.Schedd
	away  bool
	fails bool
}

func (l *liar) Usable() error {
	if l.away {
		return errors.New("away")
	}
	return nil
}

func (l *liar) Held(string, int64, []string) {}

// turn changes what the mirror is.
func (l *liar) turn() {
	l.away, l.fails = l.rand.IntN(6) == 0, l.rand.IntN(6) == 0
	hides := l.rand.IntN(4) == 0
	if l.rand.IntN(3) == 0 { // it stays as far behind as it is
		return
	}
	l.shown = scheddtest.New()
	l.shown.Clock(func() time.Time { return l.clock.Add(l.skew) })
	l.shown.Restart()
	for _, j := range slices.Backward(l.schedd.Gone()) {
		if !hides || l.rand.IntN(3) > 0 {
			l.shown.Put(j)
			l.shown.Leave(j.Cluster, j.Proc)
		}
	}
	for _, j := range l.schedd.Jobs() {
		if !hides || l.rand.IntN(3) > 0 {
			l.shown.Put(j)
		}
	}
}

// heard passes a job on, and fails at some.
func (l *liar) heard(fn func(condor.Job) error) func(condor.Job) error {
	return func(j condor.Job) error {
		if l.fails && l.rand.IntN(4) == 0 {
			return fmt.Errorf("%w: cut", schedd.ErrMirror)
		}
		return fn(j)
	}
}

func (l *liar) Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error {
	if q.Factories {
		return schedd.ErrMirror
	}
	return l.shown.Query(ctx, id, q, l.heard(fn))
}

func (l *liar) Daemon(ctx context.Context, id schedd.Identity) (schedd.Daemon, error) {
	return l.shown.Daemon(ctx, id)
}

func TestWhateverAMirrorShowsAndHintsTheEndIsHTCondorsWord(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newPair(t, seed)
			l := &liar{pair: w}
			l.turn()
			for l.shown == nil {
				l.turn()
			}
			w.ours.Mirrors = func(schedd.Endpoint) Mirror { return l }
			endpoint := schedd.Endpoint{Schedd: "s"}
			pass := func() {
				l.turn()
				for range l.rand.IntN(3) { // hints that are lost, come twice, or tell of nothing
					if err := w.ours.Hint(t.Context(), endpoint); err != nil {
						require.ErrorIs(t, err, schedd.ErrMirror)
					}
				}
				w.both(func(one *side) error { return one.Crosscheck(t.Context()) })
			}
			scheddtest.Course{
				Schedd:  w.schedd,
				Rand:    w.rand,
				Skew:    &w.skew,
				Events:  6,
				Apart:   20,
				Event:   w.event,
				Tick:    w.tick,
				Pass:    pass,
				Restore: func([]condor.Job) {},
				Refresh: func() { w.both(func(one *side) error { return one.Refresh(t.Context()) }) },
			}.Run(30)
			l.away = true
			for range 3 {
				w.clock = w.clock.Add(LostAfterMany)
				w.both(func(one *side) error { return one.Crosscheck(t.Context()) })
			}
			require.Equal(t, w.rows(w.reference), w.rows(w.ours))
		})
	}
}
