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
	seen := Sight{Began: now.Add(-30 * time.Second), Clock: 5000, Whole: now.Add(-5 * time.Minute), Started: 77}
	for name, c := range map[string]struct {
		change  func(*Sight)
		started int64
		every   time.Duration
		recent  bool
	}{
		"what has changed since the latest pass, and a minute before":   {func(*Sight) {}, 77, 10 * time.Minute, true},
		"everything, when that was last asked too long ago":             {func(*Sight) {}, 77, 5 * time.Minute, false},
		"everything, if that is what the administrator wants":           {func(*Sight) {}, 77, 0, false},
		"everything, after the schedd was started again":                {func(*Sight) {}, 78, 10 * time.Minute, false},
		"everything, if the collector does not say when it was started": {func(*Sight) {}, 0, 10 * time.Minute, false},
		"everything, if it did not say so before either":                {func(s *Sight) { s.Started = 0 }, 0, 10 * time.Minute, false},
		"everything, if no ad said what time it is there":               {func(s *Sight) { s.Clock = 0 }, 77, 10 * time.Minute, false},
		"everything, if this machine's clock was set back":              {func(s *Sight) { s.Began = now.Add(time.Minute) }, 77, 10 * time.Minute, false},
		"everything, at first":                                          {func(s *Sight) { *s = Sight{} }, 77, 10 * time.Minute, false},
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
	s := Sight{Began: now}
	require.True(t, s.covers(run))
	old := run
	old.Checked = now.Add(-time.Hour)
	require.False(t, s.covers(old), "it was not among their runs")
	s.unread = map[RunKey]bool{KeyOf(run): true}
	require.False(t, s.covers(run), "an ad could not be read")
}

func TestAPassThatBeganEarlierTakesNothingBack(t *testing.T) {
	at := time.Now()
	cross, refresh := Sight{Began: at, Clock: 1, Whole: at, Started: 7}, Sight{Began: at.Add(time.Second), Clock: 2, Started: 7}
	want := Sight{Began: at.Add(time.Second), Clock: 2, Whole: at, Started: 7, unread: map[RunKey]bool{}}
	require.Equal(t, want, Sight{}.After(cross).After(refresh))
	require.Equal(t, want, Sight{}.After(refresh).After(cross))
}

func TestRunsWithAdsThatCannotBeReadAreRememberedUntilTheyCanBe(t *testing.T) {
	one, two := RunKey{cluster: 1}, RunKey{cluster: 2}
	s := Sight{}.After(Sight{unread: map[RunKey]bool{one: true}}).After(Sight{unread: map[RunKey]bool{two: true}})
	require.Equal(t, map[RunKey]bool{one: true, two: true}, s.unread)
	require.Equal(t, map[RunKey]bool{two: true}, s.After(Sight{read: map[RunKey]bool{one: true, two: false}}).unread)
}
