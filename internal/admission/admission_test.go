package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// site is an Admission with a ledger that is a map.
type site struct {
	*Admission
	t      *testing.T
	rules  map[string]Rules
	ledger map[string]Waiter // open HTCJobs
	clock  time.Time
	went   []string // let go without asking, in order
	heard  map[string]string
	later  map[string]time.Duration
	reads  int
	broken error
	recent []Sent // before this process began

	recalls int
}

func newSite(t *testing.T, change ...func(*v1alpha1.PoolLimits)) *site {
	s := &site{
		t:      t,
		rules:  map[string]Rules{"grid": grid(change...)},
		ledger: map[string]Waiter{},
		clock:  noon,
		heard:  map[string]string{},
		later:  map[string]time.Duration{},
	}
	s.Admission = &Admission{
		Rules: func(pool string) Rules { return s.rules[pool] },
		Usage: func(_ context.Context, pool string) (Usage, error) {
			s.reads++
			u := Usage{Namespaces: map[string]Part{}}
			for _, w := range s.ledger {
				if pool != "grid" {
					break
				}
				u.Open += w.Jobs
				part := u.Namespaces[w.Namespace]
				part.Open += w.Jobs
				u.Namespaces[w.Namespace] = part
			}
			return u, s.broken
		},
		Recent: func(context.Context) (map[string][]Sent, error) {
			s.recalls++
			return map[string][]Sent{"grid": s.recent}, nil
		},
		Now:   func() time.Time { return s.clock },
		Go:    func(key string) { s.went = append(s.went, key) },
		Tell:  func(key string, what *Waits) { s.heard[key] = what.Message },
		Later: func(pool string, after time.Duration) { s.later[pool] = after },
	}
	return s
}

func job(key string, jobs int, change ...func(*Waiter)) Waiter {
	w := Waiter{Key: key, Namespace: key[:1], Demand: Demand{Jobs: jobs}, Created: noon}
	for _, f := range change {
		f(&w)
	}
	return w
}

// asks lets an HTCJob ask twice, as it does before it is prepared and before its intent, and writes the intent if it
// may.
func (s *site) asks(w Waiter) string {
	s.t.Helper()
	for range 2 {
		if err := s.Ask(s.t.Context(), "grid", w); err != nil {
			return err.Error()
		}
	}
	s.ledger[w.Key] = w
	s.Begun(w.Key)
	return ""
}

// ends removes an HTCJob from the ledger and returns who is let go.
func (s *site) ends(keys ...string) (went []string) {
	for _, key := range keys {
		delete(s.ledger, key)
	}
	s.went = nil
	require.NoError(s.t, s.Pass(s.t.Context(), "grid"))
	return s.went
}

func TestNamespacesTakeTurnsAndWithinOneTheFirstIsTheMostImportantThenTheOldest(t *testing.T) {
	s := newSite(t, maxOpen(1))
	require.Empty(t, s.asks(job("z", 1)))
	older := func(w *Waiter) { w.Created = noon.Add(-time.Hour) }
	urgent := func(w *Waiter) { w.Priority = 5 }
	for _, w := range []Waiter{job("a1", 1), job("a2", 1), job("b1", 1), job("a3", 1, older), job("b2", 1, urgent), job("c1", 1)} {
		require.Contains(t, s.asks(w), "pool grid: 1 of 1 jobs open (limits.maxOpen), ")
	}
	require.Equal(t, "pool grid: 1 of 1 jobs open (limits.maxOpen), this HTCJob is next", s.asks(job("a3", 1, older)))
	require.Equal(
		t,
		"pool grid: 1 of 1 jobs open (limits.maxOpen), 1 HTCJob before this one",
		s.asks(job("b2", 1, urgent)),
	)
	require.Equal(t, "pool grid: 1 of 1 jobs open (limits.maxOpen), 4 HTCJobs before this one", s.asks(job("b1", 1)))
	var order []string
	for last := "z"; ; {
		went := s.ends(last)
		if len(went) == 0 {
			break
		}
		require.Len(t, went, 1, "one at a time")
		last = went[0]
		order = append(order, last)
		require.Empty(t, s.asks(job(last, 1)))
	}
	require.Equal(t, []string{"a3", "b2", "c1", "a1", "b1", "a2"}, order)
}

func TestTheFirstOfTheLineIsNotStarvedBySmallerOnes(t *testing.T) {
	s := newSite(t, maxOpen(10))
	require.Empty(t, s.asks(job("a1", 6)))
	require.Empty(t, s.asks(job("b1", 3)))
	require.Equal(
		t,
		"pool grid: 9 of 10 jobs open (limits.maxOpen), this HTCJob of 10 jobs is next",
		s.asks(job("c-large", 10)),
	)
	require.Contains(
		t,
		s.asks(job("d1", 1)),
		"1 HTCJob before this one",
		"there is room for it, but it is not its turn",
	)
	require.Empty(t, s.ends("a1"))
	require.Equal(t, []string{"c-large"}, s.ends("b1"), "maxOpen counts it in")
	require.Empty(t, s.asks(job("c-large", 10)))
	require.Equal(t, []string{"d1"}, s.ends("c-large"))
}

func TestANamespaceAtItsOwnLimitHoldsUpNoOther(t *testing.T) {
	s := newSite(t, perNamespace(2), maxOpen(100))
	require.Empty(t, s.asks(job("a1", 2)))
	require.Equal(
		t,
		"pool grid: 2 of 2 jobs of namespace a open (limits.maxOpenPerNamespace), this HTCJob is next",
		s.asks(job("a2", 1)),
	)
	require.Equal(
		t,
		"pool grid: 2 of 2 jobs of namespace a open (limits.maxOpenPerNamespace), 1 HTCJob before this one",
		s.asks(job("a3", 1)),
	)
	require.Empty(t, s.asks(job("b1", 2)))
	require.Equal(t, []string{"a2", "a3"}, s.ends("a1"))
}

func TestSeveralThatAreBeingPreparedCount(t *testing.T) {
	s := newSite(t, maxOpen(2))
	require.NoError(t, s.Ask(t.Context(), "grid", job("a", 1)))
	require.NoError(t, s.Ask(t.Context(), "grid", job("b", 1)))
	require.Error(t, s.Ask(t.Context(), "grid", job("c", 1)), "none of them is in the ledger yet")
	s.Leave("a") // its inputs are missing
	require.Equal(t, []string{"c"}, s.ends())
	require.Error(t, s.Ask(t.Context(), "grid", job("a", 1)), "it has lost its place")
}

func TestTheNumberOfJobsMayBecomeKnownLate(t *testing.T) {
	s := newSite(t, maxOpen(10))
	require.Empty(t, s.asks(job("a", 5)))
	require.NoError(t, s.Ask(t.Context(), "grid", job("b", 0)))
	require.ErrorContains(t, s.Ask(t.Context(), "grid", job("b", 6)), "this HTCJob of 6 jobs is next")
	require.ErrorContains(
		t,
		s.Ask(t.Context(), "grid", job("b", 0)),
		"this HTCJob of 6 jobs is next",
		"it is remembered",
	)
	require.Equal(t, []string{"b"}, s.ends("a"))
	require.NoError(t, s.Ask(t.Context(), "grid", job("b", 0)))
	require.NoError(t, s.Ask(t.Context(), "grid", job("b", 11)), "it is to be refused")
	require.Empty(t, s.asks(job("c", 10)), "and takes no room")
}

func TestAChangedPoolIsFollowed(t *testing.T) {
	s := newSite(t, maxOpen(3))
	require.Empty(t, s.asks(job("a1", 3)))
	require.Contains(t, s.asks(job("b1", 2)), "3 of 3")
	s.rules["grid"] = grid(maxOpen(1))
	require.Equal(t, []string{"b1"}, s.ends(), "it can never be sent now, and is woken to be refused")
	require.NoError(t, s.Ask(t.Context(), "grid", job("b1", 2)))
	s.Leave("b1")
	require.Contains(t, s.asks(job("c1", 1)), "3 of 1 jobs open")
	require.Contains(t, s.asks(job("c2", 1)), "1 HTCJob before")
	s.rules["grid"] = Rules{Pool: "grid", State: v1alpha1.PoolDraining}
	require.Empty(t, s.ends("a1"))
	require.Equal(
		t,
		"pool grid: the pool is Draining, nothing new is sent until its state is Online, 1 HTCJob before this one",
		s.heard["c2"],
		"everybody hears of it at once",
	)
	s.rules["grid"] = grid()
	require.Equal(t, []string{"c1", "c2"}, s.ends())
	s.rules["grid"] = Rules{Pool: "grid", State: v1alpha1.PoolSuspended}
	err := s.Ask(t.Context(), "grid", job("c1", 1))
	var waits *Waits
	require.True(t, errors.As(err, &waits), "it was being prepared when the pool was suspended")
	require.Equal(t, ReasonPoolSuspended, waits.Reason)
}

func TestThoseSentInTheLastMinuteCount(t *testing.T) {
	s := newSite(t, newPerMinute(3))
	send := func(w Waiter) {
		require.Empty(t, s.asks(w))
		delete(s.ledger, w.Key) // it has ended and was deleted at once
		s.Sent("grid", w.Jobs, s.clock)
	}
	send(job("a1", 2))
	s.clock = s.clock.Add(10 * time.Second)
	send(job("a2", 5))
	require.Equal(
		t,
		"pool grid: 7 of 3 jobs per minute sent (limits.newPerMinute), this HTCJob is next",
		s.asks(job("a3", 1)),
	)
	require.Equal(t, time.Minute, s.later["grid"], "the five are decisive")
	s.clock = s.clock.Add(50 * time.Second)
	require.Empty(t, s.ends())
	require.Equal(t, 10*time.Second, s.later["grid"])
	s.clock = s.clock.Add(10 * time.Second)
	require.Equal(t, []string{"a3"}, s.ends())
}

func TestThoseSentShortlyBeforeARestartCount(t *testing.T) {
	s := newSite(t, newPerMinute(3))
	s.recent = []Sent{{noon.Add(-50 * time.Second), 2}, {noon.Add(-10 * time.Second), 2}}
	require.Contains(t, s.asks(job("a1", 1)), "4 of 3 jobs per minute sent")
	require.Equal(t, 10*time.Second, s.later["grid"])
	s.clock = s.clock.Add(10 * time.Second)
	require.Equal(t, []string{"a1"}, s.ends())
}

func TestWhatWasSentBeforeARestartIsReadOnceForAllPools(t *testing.T) {
	s := newSite(t, newPerMinute(3))
	s.recent = []Sent{{noon.Add(-50 * time.Second), 3}}
	recent := s.Recent
	s.Recent = func(context.Context) (map[string][]Sent, error) {
		s.Recent = recent
		return nil, errors.New("disk on fire")
	}
	require.ErrorContains(t, s.Ask(t.Context(), "grid", job("a1", 1)), "disk on fire")
	for i := range 10 {
		pool := fmt.Sprintf("pool-%d", i)
		s.rules[pool] = grid(newPerMinute(3))
		require.NoError(t, s.Ask(t.Context(), pool, job(fmt.Sprintf("b%d", i), 1)), "nothing was sent by way of it")
	}
	require.Contains(t, s.asks(job("a1", 1)), "3 of 3 jobs per minute sent")
	require.Equal(t, 1, s.recalls)
}

func TestThoseSentShortlyBeforeARestartCountAfterALookAtThePool(t *testing.T) {
	s := newSite(t, newPerMinute(3))
	s.recent = []Sent{{noon.Add(-50 * time.Second), 3}}
	usage := s.Usage
	s.Usage = func(ctx context.Context, pool string) (Usage, error) {
		s.clock = s.clock.Add(50 * time.Millisecond)
		return usage(ctx, pool)
	}
	_, err := s.Load(t.Context(), "grid")
	require.NoError(t, err)
	require.Contains(t, s.asks(job("a1", 1)), "3 of 3 jobs per minute sent")
}

func TestTheSumIsReusedForAWhileAndNeverTooLow(t *testing.T) {
	s := newSite(t, maxOpen(500))
	usage := s.Usage
	s.Usage = func(ctx context.Context, pool string) (Usage, error) {
		u, err := usage(ctx, pool)
		s.clock = s.clock.Add(50 * time.Millisecond)
		return u, err
	}
	for i := range 400 {
		require.Empty(t, s.asks(job(fmt.Sprintf("a%d", i), 1)))
		s.clock = s.clock.Add(time.Millisecond)
	}
	require.Less(t, s.reads, 5)
	for i := range 200 {
		s.asks(job(fmt.Sprintf("b%d", i), 1))
	}
	require.Len(t, s.ledger, 500)
	require.Positive(t, s.later["grid"])
	require.LessOrEqual(t, s.later["grid"], maxRest)
}

func TestAnIntentThatIsWrittenDuringASumCounts(t *testing.T) {
	s := newSite(t, maxOpen(1))
	usage := s.Usage
	require.NoError(t, s.Ask(t.Context(), "grid", job("a", 1)))
	s.Usage = func(ctx context.Context, pool string) (Usage, error) {
		u, err := usage(ctx, pool)
		s.ledger["a"] = job("a", 1)
		s.Withdraw("a") // a sync has seen the intent
		s.Begun("a")
		s.Usage = usage
		s.clock = s.clock.Add(50 * time.Millisecond)
		return u, err
	}
	require.Error(t, s.Ask(t.Context(), "grid", job("b", 1)))
}

func TestALedgerThatCannotBeReadLetsNobodyGo(t *testing.T) {
	s := newSite(t, maxOpen(1))
	s.broken = errors.New("disk on fire")
	require.ErrorIs(t, s.Ask(t.Context(), "grid", job("a", 1)), s.broken)
	require.ErrorIs(t, s.Pass(t.Context(), "grid"), s.broken)
	s.broken = nil
	require.Equal(t, []string{"a"}, s.ends())
}

func TestPlacesAreNotToldAllTheTime(t *testing.T) {
	s := newSite(t, maxOpen(1))
	require.Empty(t, s.asks(job("z", 1)))
	const n = 10_000
	for i := range n {
		s.asks(job(fmt.Sprintf("%c%d", 'a'+i%7, i), 1))
	}
	told := 0
	s.Tell = func(string, *Waits) { told++ }
	last := "z"
	for i := range 3000 { // two end in a second: 25 minutes
		s.clock = s.clock.Add(500 * time.Millisecond)
		went := s.ends(last)
		require.Len(t, went, 1, i)
		last = went[0]
		require.Empty(t, s.asks(s.at[last].going[last]))
	}
	require.LessOrEqual(t, told, 26*mostTold)
	t.Logf("%d HTCJobs sent while %d waited: %d times one was told its place again", 3000, n, told)
}

func TestPlacesThatHaveChangedALotAreTold(t *testing.T) {
	s := newSite(t, maxOpen(1))
	s.asks(job("z", 1))
	for i := range 9 {
		s.asks(job(fmt.Sprintf("a%d", i), 1))
	}
	require.Empty(t, s.ends())
	for i := range 5 {
		s.ends(slices.Collect(maps.Keys(s.ledger))...)
		require.Empty(t, s.asks(job(fmt.Sprintf("a%d", i), 1)))
	}
	s.clock = s.clock.Add(time.Minute)
	require.Empty(t, s.ends())
	require.Equal(t, map[string]string{
		"a5": "pool grid: 1 of 1 jobs open (limits.maxOpen), this HTCJob is next",
		"a6": "pool grid: 1 of 1 jobs open (limits.maxOpen), 1 HTCJob before this one",
		"a7": "pool grid: 1 of 1 jobs open (limits.maxOpen), 2 HTCJobs before this one",
		"a8": "pool grid: 1 of 1 jobs open (limits.maxOpen), 3 HTCJobs before this one",
	}, s.heard)
	clear(s.heard)
	s.clock = s.clock.Add(time.Minute)
	require.Empty(t, s.ends())
	require.Empty(t, s.heard)
}

func TestALoadSaysWhyNothingIsSent(t *testing.T) {
	s := newSite(t, maxOpen(3))
	load := func() Load {
		l, err := s.Load(t.Context(), "grid")
		require.NoError(t, err)
		return l
	}
	require.Empty(t, load().Reason)
	s.asks(job("a1", 2))
	require.Equal(t, Load{Open: 2, Namespaces: []NamespaceLoad{{"a", 2, 0}}}, load())
	s.asks(job("b1", 2))
	l := load()
	require.Equal(t, "LimitReached", l.Reason)
	require.Equal(t, "2 of 3 jobs open (limits.maxOpen)", l.Message)
	require.Equal(t, 1, l.Waiting)
	require.Equal(t, []NamespaceLoad{{"a", 2, 0}, {"b", 0, 1}}, l.Namespaces)
	s.Leave("b1")
	require.Empty(t, load().Reason)
}

func TestAnHTCJobMovesToAnotherPool(t *testing.T) {
	s := newSite(t, maxOpen(1))
	s.rules["other"] = Rules{Pool: "other", Limits: v1alpha1.PoolLimits{MaxOpen: new(int32(1))}}
	s.asks(job("a1", 1))
	s.asks(job("b1", 1))
	require.NoError(t, s.Ask(t.Context(), "other", job("b1", 1)))
	require.Contains(t, s.asks(job("c1", 1)), "this HTCJob is next")
}

func TestThoseThatWaitedBeforeARestartComeFirst(t *testing.T) {
	s := newSite(t, maxOpen(10))
	s.asks(job("z", 5))
	s.Recall("grid", job("a1", 6, func(w *Waiter) { w.Created = noon.Add(-time.Hour) }))
	require.Contains(t, s.asks(job("a2", 5)), "1 HTCJob before")
	require.Equal(t, []string{"a1"}, s.ends("z"))
}

func TestWhatOneNamespaceHasOnHoldOrIdleIsPassedOverInTheLine(t *testing.T) {
	s := newSite(t, maxOpen(10), func(l *v1alpha1.PoolLimits) { l.MaxHeld = new(int32(0)) })
	usage := s.Usage
	s.Usage = func(ctx context.Context, pool string) (Usage, error) {
		u, err := usage(ctx, pool)
		part := u.Namespaces["a"]
		part.Held, u.Held = part.Open, part.Open
		u.Namespaces["a"] = part
		return u, err
	}
	require.Empty(t, s.asks(job("a1", 1)))
	require.Equal(
		t,
		"pool grid: 1 of at most 0 jobs on hold (limits.maxHeld), this HTCJob is next",
		s.asks(job("a2", 1)),
	)
	l, err := s.Load(t.Context(), "grid")
	require.NoError(t, err)
	require.Equal(t, "LimitReached", l.Reason, "nobody else waits")
	require.Empty(t, s.asks(job("b1", 1)))
	require.Equal(
		t,
		"pool grid: 2 of 10 jobs open (limits.maxOpen), this HTCJob of 10 jobs is next",
		s.asks(job("c1", 10)),
	)
	require.Empty(t, s.asks(job("b2", 1)), "an HTCJob that does not fit beside what is on hold holds up nobody")
	require.Equal(t, []string{"a2"}, s.ends("a1", "b1", "b2"), "the hold is gone")
}
