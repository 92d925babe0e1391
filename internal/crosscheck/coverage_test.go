package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestWhatAPassAsksAbout(t *testing.T) {
	now := time.Now()
	seen := Coverage{Began: now.Add(-30 * time.Second), Clock: 5000, Whole: now.Add(-5 * time.Minute), Started: 77}
	for name, c := range map[string]struct {
		change  func(*Coverage)
		started int64
		every   time.Duration
		recent  bool
	}{
		"what has changed since the latest pass, and a minute before":   {func(*Coverage) {}, 77, 10 * time.Minute, true},
		"everything, when that was last asked too long ago":             {func(*Coverage) {}, 77, 5 * time.Minute, false},
		"everything, if that is what the administrator wants":           {func(*Coverage) {}, 77, 0, false},
		"everything, after the schedd was started again":                {func(*Coverage) {}, 78, 10 * time.Minute, false},
		"everything, if the collector does not say when it was started": {func(*Coverage) {}, 0, 10 * time.Minute, false},
		"everything, if it did not say so before either":                {func(s *Coverage) { s.Started = 0 }, 0, 10 * time.Minute, false},
		"everything, if no ad said what time it is there":               {func(s *Coverage) { s.Clock = 0 }, 77, 10 * time.Minute, false},
		"everything, if this machine's clock was set back":              {func(s *Coverage) { s.Began = now.Add(time.Minute) }, 77, 10 * time.Minute, false},
		"everything, at first":                                          {func(s *Coverage) { *s = Coverage{} }, 77, 10 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen
			c.change(&s)
			p, recent := s.Recent(now, c.started, c.every)
			require.Equal(t, c.recent, recent)
			if recent {
				require.Equal(t, schedd.Period{From: 4940, Age: 90 * time.Second, Most: changesAtOnce}, p)
			}
		})
	}
}

func TestARunThatThePassesHaveNotLookedAtIsAskedAboutAsAWhole(t *testing.T) {
	now := time.Now()
	run := ledger.Run{UID: "u", Attempt: 1, Cluster: 3, Checked: now.Add(-time.Minute)}
	s, mark := Coverage{Began: now}, Mark{At: now}
	require.True(t, s.covers(run, mark))
	old := run
	old.Checked = now.Add(-time.Hour)
	require.False(t, s.covers(old, mark), "it was not among their runs")
	s.unread = map[runKey]bool{keyOf(run): true}
	require.False(t, s.covers(run, mark), "an ad could not be read")
}

func TestAPassThatBeganEarlierTakesNothingBack(t *testing.T) {
	at := time.Now()
	cross, refresh := Coverage{
		Began:   at,
		Clock:   1,
		Whole:   at,
		Started: 7,
	}, Coverage{
		Began:   at.Add(time.Second),
		Clock:   2,
		Started: 7,
	}
	want := Coverage{Began: at.Add(time.Second), Clock: 2, Whole: at, Started: 7, unread: map[runKey]bool{}}
	require.Equal(t, want, Coverage{}.After(cross).After(refresh))
	require.Equal(t, want, Coverage{}.After(refresh).After(cross))
}

func TestRunsWithAdsThatCannotBeReadAreRememberedUntilTheyCanBe(t *testing.T) {
	one, two := runKey{cluster: 1}, runKey{cluster: 2}
	s := Coverage{}.After(Coverage{unread: map[runKey]bool{one: true}}).
		After(Coverage{unread: map[runKey]bool{two: true}})
	require.Equal(t, map[runKey]bool{one: true, two: true}, s.unread)
	require.Equal(t, map[runKey]bool{two: true}, s.After(Coverage{read: map[runKey]bool{one: true, two: false}}).unread)
}
