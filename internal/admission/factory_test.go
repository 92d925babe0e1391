package admission

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// made returns a factory of namespace a whose jobs, open of them, all run, and which may have granted.
func made(open, granted int, change ...func(*Factory)) Factory {
	f := Factory{
		Namespace: "a", Each: Demand{Jobs: 1, Cores: 1}, Granted: Share{granted, granted}, Open: open, InUse: open, ToMake: 1000,
	}
	for _, edit := range change {
		edit(&f)
	}
	return f
}

// with is a Usage of factories, and of what else runs in namespace b.
func with(others int, factories map[string]Factory) Usage {
	u := Usage{Open: others, Running: others, Cores: others, Namespaces: map[string]Part{"b": {Open: others}}}
	for uid, f := range factories {
		u.Open, u.Idle, u.Cores = u.Open+f.Open, u.Idle+f.Idle, u.Cores+f.InUse*f.Each.Cores
		part := u.Namespaces[f.Namespace]
		part.Open, part.Idle = part.Open+f.Open, part.Idle+f.Idle
		u.Namespaces[f.Namespace] = part
		u.put(uid, f)
	}
	return u
}

func TestAFactoryMayMakeWhatItWasToldAndHasNotMadeYet(t *testing.T) {
	few := func(f *Factory) { f.ToMake = 1 }
	idle := func(there, most int) func(*Factory) { return func(f *Factory) { f.Idle, f.Granted.Idle = there, most } }
	for name, try := range map[string]struct {
		f        Factory
		may      Share
		mayInUse int
	}{
		"as many as it was told":      {made(2, 6), Share{6, 6}, 6},
		"as many as are left to make": {made(2, 6, few), Share{3, 1}, 3},
		"what is there already stays": {made(6, 2), Share{6, 2}, 6},
		"none while none may wait":    {made(2, 6, idle(1, 0)), Share{2, 1}, 2},
		"as many wait as may":         {made(2, 6, idle(1, 3)), Share{6, 3}, 6},
		"what is held uses nothing":   {made(6, 6, func(f *Factory) { f.InUse, f.Held = 4, 2 }), Share{6, 4}, 4},
		"one that it is owed":         {made(0, 1, idle(0, 0), func(f *Factory) { f.Owed = true }), Share{1, 1}, 1},
	} {
		require.Equal(t, try.may, try.f.may(), name)
		require.Equal(t, try.mayInUse, try.f.mayUse(), name)
	}
}

func TestWhatAFactoryMayMakeIsInUse(t *testing.T) {
	limits := grid(maxOpen(6), perNamespace(5), func(l *v1alpha1.PoolLimits) { l.Cores = new(int32(6)) })
	u := with(1, map[string]Factory{"f": made(2, 4)})
	require.Equal(t, []int{5, 4, 5}, []int{u.Open, u.Idle, u.Cores})
	require.Equal(t, Share{2, 4}, u.Coming)
	for full, try := range map[string]struct {
		limit string
		asks  Demand
		in    string
	}{
		"5 of 6 jobs open, 2 of them reserved for factories":                {"maxOpen", Demand{Jobs: 2, Cores: 1}, "b"},
		"4 of 5 jobs of namespace a open, 2 of them reserved for factories": {"maxOpenPerNamespace", Demand{Jobs: 2, Cores: 1}, "a"},
		"5 of 6 cores in use": {"cores", Demand{Jobs: 1, Cores: 2}, "b"},
	} {
		a := limits.Decide(u, try.in, try.asks, noon)
		require.Equal(t, full+" (limits."+try.limit+")", a.Full)
	}
	idle := grid(func(l *v1alpha1.PoolLimits) { l.MaxIdle = new(int32(4)) })
	require.Equal(
		t,
		"4 of 4 jobs idle, 4 of them reserved for factories, 4 of them of namespace a, whose share is 2 (limits.maxIdle)",
		idle.Decide(u, "a", Demand{Jobs: 1}, noon).Full,
	)
	percent := grid(func(l *v1alpha1.PoolLimits) { l.IdlePercentOfRunning = &v1alpha1.IdlePercent{Percent: 100} })
	require.Equal(t, Sends, percent.Decide(u, "a", Demand{Jobs: 1}, noon).Why, "only what is there is idle")
	u.put("f", made(2, 2))
	require.Equal(t, []int{3, 2, 3}, []int{u.Open, u.Idle, u.Cores}, "it was told less")
}

func TestWhatIsLeftToAFactory(t *testing.T) {
	one, nobody := Demand{Jobs: 1, Cores: 1}, Demand{}
	two := func(f *Factory) { f.Each.Cores = 2 }
	elsewhere := func(f *Factory) { f.Namespace = "c" }
	cores := func(n int32) func(*v1alpha1.PoolLimits) { return func(l *v1alpha1.PoolLimits) { l.Cores = &n } }
	idle := func(n int32) func(*v1alpha1.PoolLimits) { return func(l *v1alpha1.PoolLimits) { l.MaxIdle = &n } }
	for name, try := range map[string]struct {
		rules      Rules
		usage      Usage
		first, own Demand
		open, idle int // -1: any number
	}{
		"no limits":                             {grid(), with(3, map[string]Factory{"f": made(1, 1)}), one, one, -1, -1},
		"what others leave":                     {grid(maxOpen(100)), with(90, map[string]Factory{"f": made(1, 1)}), nobody, nobody, 10, -1},
		"of cores":                              {grid(cores(100)), with(90, map[string]Factory{"f": made(1, 1, two)}), nobody, nobody, 5, -1},
		"of what may be idle":                   {grid(idle(100)), with(90, map[string]Factory{"f": made(1, 1)}), nobody, nobody, -1, 100},
		"the same as another factory":           {grid(maxOpen(100)), with(0, map[string]Factory{"f": made(1, 1), "g": made(1, 1, elsewhere)}), nobody, nobody, 50, -1},
		"which has made all":                    {grid(maxOpen(100)), with(0, map[string]Factory{"f": made(1, 1), "g": made(9, 9, func(f *Factory) { f.ToMake = 0 })}), nobody, nobody, 91, -1},
		"no more than another leaves now":       {grid(maxOpen(100)), with(0, map[string]Factory{"f": made(1, 1), "g": made(90, 50)}), nobody, nobody, 10, -1},
		"no more than another may make":         {grid(maxOpen(100)), with(0, map[string]Factory{"f": made(1, 1), "g": made(10, 95)}), nobody, nobody, 5, -1},
		"half, while a small one waits":         {grid(maxOpen(100)), with(0, map[string]Factory{"f": made(100, 100)}), one, nobody, 50, -1},
		"what a large one leaves":               {grid(maxOpen(100)), with(0, map[string]Factory{"f": made(100, 100)}), Demand{Jobs: 90}, nobody, 10, -1},
		"which is as large as the pool":         {grid(maxOpen(100)), with(0, map[string]Factory{"f": made(100, 100)}), Demand{Jobs: 100}, nobody, 0, -1},
		"in cores":                              {grid(cores(100)), with(0, map[string]Factory{"f": made(50, 50, two)}), Demand{Jobs: 1, Cores: 97}, nobody, 1, -1},
		"in what may be idle":                   {grid(idle(100)), with(0, map[string]Factory{"f": made(50, 50)}), Demand{Jobs: 95}, nobody, -1, 5},
		"less, where it may have none":          {grid(maxOpen(100)), with(100, map[string]Factory{"f": made(5, 5)}), nobody, nobody, 0, -1},
		"of its namespace":                      {grid(perNamespace(10)), with(90, map[string]Factory{"f": made(1, 1), "g": made(4, 4, elsewhere)}), one, nobody, 10, -1},
		"where a large one waits":               {grid(perNamespace(10)), with(90, map[string]Factory{"f": made(1, 1)}), nobody, Demand{Jobs: 8}, 2, -1},
		"what it is owed, though one waits":     {grid(maxOpen(6)), with(5, map[string]Factory{"f": made(0, 1, func(f *Factory) { f.Owed, f.Granted.Idle = true, 0 })}), Demand{Jobs: 6}, nobody, 1, -1},
		"unless there is no room":               {grid(maxOpen(6)), with(6, map[string]Factory{"f": made(0, 1, func(f *Factory) { f.Owed, f.Granted.Idle = true, 0 })}), Demand{Jobs: 6}, nobody, 0, -1},
		"as much as idle jobs of others may be": {grid(maxOpen(100)), several(map[string]Part{"b": {Open: 100, Idle: 100}}), nobody, nobody, 50, -1},
	} {
		t.Run(name, func(t *testing.T) {
			share := try.rules.ShareOf(try.usage, "f", try.first, try.own)
			for n, most := range map[int]int{try.open: share.Open, try.idle: share.Idle} {
				if n < 0 {
					require.Greater(t, most, 1_000_000)
				} else {
					require.Equal(t, n, most)
				}
			}
		})
	}
}

// factories makes the ledger of a site have these, in addition to its HTCJobs.
func (s *site) factories(all map[string]Factory) {
	usage := s.Usage
	s.Usage = func(ctx context.Context, pool string) (Usage, error) {
		u, err := usage(ctx, pool)
		for uid, f := range all {
			u.Open += f.Open
			u.put(uid, f)
		}
		return u, err
	}
}

func (s *site) share(uid string) Share {
	s.t.Helper()
	share, err := s.Share(s.t.Context(), "grid", uid)
	require.NoError(s.t, err)
	require.NotNil(s.t, share)
	return *share
}

func TestAFactoryMakesWayForTheFirstOfTheLineAndThenHasItsTurn(t *testing.T) {
	s := newSite(t, maxOpen(6))
	all := map[string]Factory{"f": made(6, 6)}
	s.factories(all)
	require.Equal(t, 6, s.share("f").Open)
	require.Contains(t, s.asks(job("c-small", 1)), "6 of 6 jobs open (limits.maxOpen), this HTCJob is next")
	require.Equal(t, 3, s.share("f").Open, "as much as the other one")
	s.Leave("c-small")
	require.Contains(t, s.asks(job("c-large", 6)), "this HTCJob of 6 jobs is next")
	require.Equal(t, 0, s.share("f").Open)

	all["f"] = made(2, 1, func(f *Factory) { f.Granted.Idle = 0 })
	require.Empty(t, s.ends(), "two go on")
	require.Equal(t, 0, s.share("f").Open)
	all["f"] = made(0, 1, func(f *Factory) { f.Granted.Idle = 0 })
	require.Equal(t, []string{"c-large"}, s.ends())
	require.Empty(t, s.asks(job("c-large", 6)))
	require.Contains(t, s.asks(job("d-large", 6)), "this HTCJob of 6 jobs is next")
	require.Equal(t, 0, s.share("f").Open, "there is no room")
	require.Empty(t, s.ends("c-large"), "it has made way for one")
	require.Equal(t, 3, s.share("f").Open)
	all["f"] = made(0, 3)
	require.Empty(t, s.ends())
	require.Equal(t, 0, s.share("f").Open, "it may make some: now it is the other's turn")
}

func TestWhatAFactoryIsGrantedIsInUseBeforeAnybodyElseIsLetGo(t *testing.T) {
	s := newSite(t, maxOpen(6))
	all := map[string]Factory{"f": made(1, 1)}
	s.factories(all)
	usage := s.Usage
	s.Usage = func(ctx context.Context, pool string) (Usage, error) { // so that the sum is not read again
		u, err := usage(ctx, pool)
		s.clock = s.clock.Add(time.Second)
		return u, err
	}
	require.NoError(t, s.Ask(t.Context(), "grid", job("b", 2)), "it is on its way")
	require.NoError(t, s.Grant(t.Context(), "grid", "f", func(share *Share) error {
		require.Equal(t, 4, share.Open)
		return nil
	}))
	require.ErrorContains(
		t,
		s.Ask(t.Context(), "grid", job("c", 1)),
		"6 of 6 jobs open, 3 of them reserved for factories",
	)
	s.rules["grid"] = grid(newPerMinute(1))
	require.NoError(t, s.Grant(t.Context(), "grid", "f", func(share *Share) error {
		require.Nil(t, share)
		return nil
	}))
}

func TestAFactoryMakesNoWayForWhoeverWaitsForSomethingElse(t *testing.T) {
	for name, limit := range map[string]func(*v1alpha1.PoolLimits){
		"newPerMinute":              newPerMinute(1),
		"another's namespace limit": perNamespace(6),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, maxOpen(100), limit)
			s.factories(map[string]Factory{"f": made(1, 1)})
			s.Sent("grid", 1, noon)
			require.Empty(t, s.asks(job("z", 6)))
			require.NotEmpty(t, s.asks(job("z2", 1)))
			require.GreaterOrEqual(t, s.share("f").Open, 6)
		})
	}
}
