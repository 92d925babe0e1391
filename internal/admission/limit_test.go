package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func grid(change ...func(*v1alpha1.PoolLimits)) Rules {
	r := Rules{Pool: "grid"}
	for _, f := range change {
		f(&r.Limits)
	}
	return r
}

func maxOpen(n int32) func(*v1alpha1.PoolLimits) {
	return func(l *v1alpha1.PoolLimits) { l.MaxOpen = &n }
}

func perNamespace(n int32) func(*v1alpha1.PoolLimits) {
	return func(l *v1alpha1.PoolLimits) { l.MaxOpenPerNamespace = &n }
}

func newPerMinute(n int32) func(*v1alpha1.PoolLimits) {
	return func(l *v1alpha1.PoolLimits) { l.NewPerMinute = &n }
}

func TestEachLimitHoldsBackWhatItShould(t *testing.T) {
	maxIdle := func(n int32) func(*v1alpha1.PoolLimits) { return func(l *v1alpha1.PoolLimits) { l.MaxIdle = &n } }
	maxHeld := func(n int32) func(*v1alpha1.PoolLimits) { return func(l *v1alpha1.PoolLimits) { l.MaxHeld = &n } }
	maxQueue := func(n int32) func(*v1alpha1.PoolLimits) { return func(l *v1alpha1.PoolLimits) { l.MaxQueue = &n } }
	percent := func(p v1alpha1.IdlePercent) func(*v1alpha1.PoolLimits) {
		return func(l *v1alpha1.PoolLimits) { l.IdlePercentOfRunning = &p }
	}
	for name, try := range map[string]struct {
		rules Rules
		usage Usage
		jobs  int
		why   Why
		full  string
	}{
		"no limits":                     {rules: grid(), usage: Usage{Open: 1e6, Idle: 1e6, Held: 1e6}, jobs: 1e5},
		"room for all":                  {rules: grid(maxOpen(10)), usage: Usage{Open: 5}, jobs: 5},
		"room for all but one":          {grid(maxOpen(10)), Usage{Open: 6}, 5, Limited, "6 of 10 jobs open (limits.maxOpen)"},
		"lowered below what is open":    {grid(maxOpen(5)), Usage{Open: 10}, 1, Limited, "10 of 5 jobs open (limits.maxOpen)"},
		"larger than the pool":          {rules: grid(maxOpen(10)), jobs: 11, why: Never},
		"larger than a namespace's":     {rules: grid(perNamespace(10)), jobs: 11, why: Never},
		"larger than one may be":        {rules: grid(maxQueue(10)), jobs: 11, why: Never},
		"as large as one may be":        {rules: grid(maxQueue(10)), jobs: 10},
		"namespace full":                {grid(perNamespace(10)), Usage{Namespaces: map[string]Part{"a": {Open: 10}}}, 1, Limited, "10 of 10 jobs of namespace a open (limits.maxOpenPerNamespace)"},
		"another namespace full":        {rules: grid(perNamespace(10)), usage: Usage{Namespaces: map[string]Part{"b": {Open: 10}}}, jobs: 1},
		"idle limit not reached":        {rules: grid(maxIdle(100)), usage: Usage{Idle: 90}, jobs: 10},
		"idle limit would be exceeded":  {grid(maxIdle(100)), mine(Usage{Idle: 91}), 10, Limited, "91 of 100 jobs idle (limits.maxIdle)"},
		"larger than may be idle":       {rules: grid(maxIdle(100)), jobs: 10_000, why: Never},
		"idle limit reached":            {grid(maxIdle(100)), mine(Usage{Idle: 100}), 1, Limited, "100 of 100 jobs idle (limits.maxIdle)"},
		"idle follows running":          {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20})), usage: mine(Usage{Idle: 19, Running: 100}), jobs: 1},
		"idle would exceed running":     {grid(percent(v1alpha1.IdlePercent{Percent: 20})), mine(Usage{Idle: 19, Running: 100}), 2, Limited, "19 of 20 jobs idle with 100 running (limits.idlePercentOfRunning)"},
		"nothing runs or is idle yet":   {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20})), jobs: 500},
		"larger than max":               {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20, Max: new(int32(10))})), jobs: 11, why: Never},
		"idle follows running, reached": {grid(percent(v1alpha1.IdlePercent{Percent: 20})), mine(Usage{Idle: 20, Running: 100}), 1, Limited, "20 of 20 jobs idle with 100 running (limits.idlePercentOfRunning)"},
		"nothing runs yet":              {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20})), jobs: 1},
		"nothing runs, one is idle":     {grid(percent(v1alpha1.IdlePercent{Percent: 20})), mine(Usage{Idle: 1}), 1, Limited, "1 of 1 jobs idle with 0 running (limits.idlePercentOfRunning)"},
		"at least min":                  {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20, Min: new(int32(10))})), usage: Usage{Idle: 9}, jobs: 1},
		"at most max":                   {grid(percent(v1alpha1.IdlePercent{Percent: 20, Max: new(int32(10))})), mine(Usage{Idle: 10, Running: 1000}), 1, Limited, "10 of 10 jobs idle with 1000 running (limits.idlePercentOfRunning)"},
		"percent of two billion":        {rules: grid(percent(v1alpha1.IdlePercent{Percent: 10_000})), usage: mine(Usage{Idle: 1 << 31, Running: 1 << 31}), jobs: 1},
		"as many held as may be":        {rules: grid(maxHeld(500)), usage: Usage{Held: 500}, jobs: 1},
		"too many held":                 {grid(maxHeld(500)), mine(Usage{Held: 501}), 1, Limited, "501 of at most 500 jobs on hold (limits.maxHeld)"},
		"held by the pool itself":       {rules: grid(maxHeld(0)), usage: Usage{Held: 5, HeldByPool: 5}, jobs: 1},
		"none may be held":              {grid(maxHeld(0)), mine(Usage{Held: 1}), 1, Limited, "1 of at most 0 jobs on hold (limits.maxHeld)"},
		"few sent":                      {rules: grid(newPerMinute(30)), usage: Usage{Sent: []Sent{{noon, 20}}}, jobs: 10},
		"too many for this minute":      {grid(newPerMinute(30)), Usage{Sent: []Sent{{noon, 20}}}, 11, Limited, "20 of 30 jobs per minute sent (limits.newPerMinute)"},
		"more than a minute's":          {rules: grid(newPerMinute(30)), jobs: 31, why: Never},
		"many sent":                     {grid(newPerMinute(30)), Usage{Sent: []Sent{{noon, 30}}}, 1, Limited, "30 of 30 jobs per minute sent (limits.newPerMinute)"},
		"many on their way":             {grid(newPerMinute(30)), Usage{Sending: 30}, 1, Limited, "30 of 30 jobs per minute sent (limits.newPerMinute)"},
		"many sent long ago":            {rules: grid(newPerMinute(30)), usage: Usage{Sent: []Sent{{noon.Add(-time.Minute), 30}}}, jobs: 1},
		"draining":                      {Rules{Pool: "grid", State: v1alpha1.PoolDraining}, Usage{}, 1, Draining, "the pool is Draining, nothing new is sent until its state is Online"},
		"suspended":                     {Rules{Pool: "grid", State: v1alpha1.PoolSuspended}, Usage{}, 1, Suspended, "the pool is Suspended, nothing new is sent until its state is Online"},
	} {
		t.Run(name, func(t *testing.T) {
			a := try.rules.Decide(try.usage, "a", Demand{Jobs: try.jobs}, noon)
			require.Equal(t, try.why, a.Why)
			require.Equal(t, try.full, a.Full)
			require.Equal(t, a.Limit != "" && a.Limit != "maxOpen" && a.Limit != "newPerMinute", a.Alone)
		})
	}
}

// mine is a Usage of one namespace.
func mine(u Usage) Usage {
	u.Namespaces = map[string]Part{"a": {Open: u.Open, Idle: u.Idle, Held: u.Held, HeldByPool: u.HeldByPool}}
	return u
}

// several is a Usage of several namespaces, whose idle jobs HTCondor has shown.
func several(parts map[string]Part) Usage {
	u := Usage{Namespaces: map[string]Part{}}
	for ns, p := range parts {
		p.Waiting = p.Idle
		u.Namespaces[ns] = p
		u.Open, u.Idle, u.Held, u.HeldByPool = u.Open+p.Open, u.Idle+p.Idle, u.Held+p.Held, u.HeldByPool+p.HeldByPool
		u.Running += p.Open - p.Idle - p.Held
	}
	return u
}

func TestOneNamespacesIdleAndHeldJobsHoldUpNoOther(t *testing.T) {
	limits := func(l v1alpha1.PoolLimits) Rules { return Rules{Pool: "grid", Limits: l} }
	idle, held, open, none := limits(
		v1alpha1.PoolLimits{MaxIdle: new(int32(100))},
	), limits(
		v1alpha1.PoolLimits{MaxHeld: new(int32(50))},
	),
		limits(
			v1alpha1.PoolLimits{MaxOpen: new(int32(1000))},
		), limits(
			v1alpha1.PoolLimits{MaxHeld: new(int32(0))},
		)
	percent := limits(v1alpha1.PoolLimits{IdlePercentOfRunning: &v1alpha1.IdlePercent{Percent: 10}})
	for name, c := range map[string]struct {
		rules Rules
		usage Usage
		asks  string
		jobs  int
		full  string // empty: it is sent
		alone bool
	}{
		"all idle jobs are another's":        {idle, several(map[string]Part{"a": {Open: 500, Idle: 500}}), "b", 10, "", false},
		"whose idle jobs they are":           {idle, several(map[string]Part{"a": {Open: 500, Idle: 500}}), "a", 1, "500 of 100 jobs idle (limits.maxIdle)", true},
		"more than its share is idle":        {idle, several(map[string]Part{"a": {Open: 90, Idle: 90}, "b": {Open: 50, Idle: 50}}), "b", 1, "140 of 100 jobs idle, 50 of them of namespace b, whose share is 50 (limits.maxIdle)", true},
		"less than its share is idle":        {idle, several(map[string]Part{"a": {Open: 90, Idle: 90}, "b": {Open: 49, Idle: 49}}), "b", 1, "", false},
		"below the limit nobody has a share": {idle, several(map[string]Part{"a": {Open: 60, Idle: 60}, "b": {Open: 1, Idle: 1}}), "a", 1, "", false},
		"idle by percent":                    {percent, several(map[string]Part{"a": {Open: 200, Idle: 100}}), "b", 1, "", false},
		"idle by percent, own":               {percent, several(map[string]Part{"a": {Open: 200, Idle: 100}, "b": {Open: 1}}), "a", 1, "100 of 10 jobs idle with 101 running, 100 of them of namespace a, whose share is 5 (limits.idlePercentOfRunning)", true},
		"all held jobs are another's":        {held, several(map[string]Part{"a": {Open: 60, Held: 60}}), "b", 1, "", false},
		"whose held jobs they are":           {held, several(map[string]Part{"a": {Open: 60, Held: 60}, "b": {Open: 1}}), "a", 1, "60 of at most 50 jobs on hold, 60 of them of namespace a, whose share is 25 (limits.maxHeld)", true},
		"its holds are the pool's":           {held, several(map[string]Part{"a": {Open: 60, Held: 60}, "b": {Open: 30, Held: 30, HeldByPool: 30}}), "b", 1, "", false},
		"none may be held, and none is":      {none, several(map[string]Part{"a": {Open: 1, Held: 1}}), "b", 1, "", false},
		"none may be held, and one is":       {none, several(map[string]Part{"a": {Open: 1, Held: 1}, "b": {Open: 1, Held: 1}}), "b", 1, "2 of at most 0 jobs on hold, 1 of them of namespace b, whose share is 0 (limits.maxHeld)", true},
		"the pool is full of another's idle": {open, several(map[string]Part{"a": {Open: 1000, Idle: 1000}}), "b", 500, "", false},
		"of another's held":                  {open, several(map[string]Part{"a": {Open: 1000, Held: 1000}}), "b", 500, "", false},
		"more than the share beside them":    {open, several(map[string]Part{"a": {Open: 1000, Idle: 1000}}), "b", 501, "1000 of 1000 jobs open (limits.maxOpen)", true},
		"its own fill the pool":              {open, several(map[string]Part{"a": {Open: 1000, Held: 1000}}), "a", 1, "1000 of 1000 jobs open (limits.maxOpen)", true},
		"what runs counts for all":           {open, several(map[string]Part{"a": {Open: 1000}}), "b", 1, "1000 of 1000 jobs open (limits.maxOpen)", false},
		"what runs, and a share":             {open, several(map[string]Part{"a": {Open: 1000, Idle: 800}}), "b", 300, "", false},
		"what was just sent counts for all":  {open, Usage{Open: 1000, Idle: 1000, Namespaces: map[string]Part{"a": {Open: 1000, Idle: 1000}}}, "b", 1, "1000 of 1000 jobs open (limits.maxOpen)", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.rules.Decide(c.usage, c.asks, Demand{Jobs: c.jobs}, noon)
			require.Equal(t, c.full, a.Full)
			require.Equal(t, c.alone, a.Alone)
		})
	}
}

func TestHoweverManyNamespacesFillThePoolTheNextHasItsShareAndTheScheddABound(t *testing.T) {
	for _, stuck := range []func(n int) Part{
		func(n int) Part { return Part{Open: n, Idle: n} }, func(n int) Part { return Part{Open: n, Held: n} },
	} {
		parts, all := map[string]Part{}, 0
		for i := range 100 {
			name := string(rune('A'+i/26)) + string(rune('a'+i%26))
			fits := 0
			for grid(maxOpen(1000)).Decide(several(parts), name, Demand{Jobs: fits + 1}, noon).Why == Sends {
				fits++
			}
			require.GreaterOrEqual(t, fits, 1000/(i+1), "namespace %d", i+1)
			parts[name] = stuck(fits)
			all += fits
		}
		require.Less(t, all, 6000, "1,000 times 1 + 1/2 + ... + 1/100, and the rounding")
	}
}

func TestAMinuteAfterEnoughWereSentTheNextMayGo(t *testing.T) {
	sent := []Sent{{noon, 10}, {noon.Add(10 * time.Second), 15}, {noon.Add(20 * time.Second), 20}}
	a := grid(newPerMinute(30)).Decide(Usage{Sent: sent}, "a", Demand{Jobs: 1}, noon.Add(30*time.Second))
	require.Equal(t, Limited, a.Why)
	require.Equal(t, noon.Add(70*time.Second), a.Again, "the first ten do not suffice")
	require.Equal(t, Sends, grid(newPerMinute(30)).Decide(Usage{Sent: sent}, "a", Demand{Jobs: 1}, a.Again).Why)
	a = grid(newPerMinute(30)).Decide(Usage{Sent: sent, Sending: 30}, "a", Demand{Jobs: 1}, noon.Add(30*time.Second))
	require.Zero(t, a.Again, "those on their way count until they have been sent")
}

func TestARefusalNamesTheLimitWhereItIsSet(t *testing.T) {
	require.EqualError(
		t,
		grid(maxOpen(3)).Refuse(Demand{Jobs: 4}),
		"queue 4 is more than the 3 jobs that may be open in pool grid (limits.maxOpen): make it several HTCJobs",
	)
	flags := Rules{Limits: v1alpha1.PoolLimits{MaxQueue: new(int32(3)), MaxOpenPerNamespace: new(int32(5))}}
	require.EqualError(
		t,
		flags.Refuse(Demand{Jobs: 4}),
		"queue 4 is more than the 3 jobs that one HTCJob may have here (--max-queue): make it several HTCJobs",
	)
	flags.Limits.MaxQueue = nil
	require.EqualError(
		t,
		flags.Refuse(Demand{Jobs: 6}),
		"queue 6 is more than the 5 jobs that a namespace may have open here (--max-open-per-namespace): make it several HTCJobs",
	)
	require.NoError(t, flags.Refuse(Demand{Jobs: 5}))
	require.NoError(t, flags.RefuseNodes(4))
	flags.Limits.MaxQueue = new(int32(3))
	require.EqualError(
		t,
		flags.RefuseNodes(4),
		"4 nodes are more than the 3 that one HTCWorkflow may have here (--max-queue): make it several HTCWorkflows",
	)
	require.NoError(t, flags.RefuseNodes(3))
	require.ErrorContains(t, Rules{Pool: "grid", Limits: flags.Limits}.RefuseNodes(4), "in pool grid (limits.maxQueue)")
}

func TestOneThatFitsOnlyWhenOthersIdleJobsHaveStartedIsOvertakenByThoseAloneWhoHaveLessThanTheirShare(t *testing.T) {
	limits := grid(func(l *v1alpha1.PoolLimits) { l.MaxIdle = new(int32(100)) })
	usage := several(map[string]Part{"a": {Open: 100, Idle: 99}})
	b := limits.Decide(usage, "b", Demand{Jobs: 60}, noon)
	require.True(t, b.Alone && b.Owed)
	require.Equal(t, Sends, limits.Decide(usage, "a", Demand{Jobs: 1}, noon).Why, "nobody waits")
	usage.Owed = []string{"b"}
	require.Equal(
		t,
		Limited,
		limits.Decide(usage, "a", Demand{Jobs: 1}, noon).Why,
		"b waits, and a has more than its share",
	)
	require.Equal(t, Sends, limits.Decide(usage, "c", Demand{Jobs: 5}, noon).Why)
	require.Equal(t, Limited, limits.Decide(usage, "c", Demand{Jobs: 34}, noon).Why, "a third is 33")
	require.Equal(
		t,
		Sends,
		limits.Decide(several(map[string]Part{"a": {Open: 100, Idle: 40}}), "b", Demand{Jobs: 60}, noon).Why,
	)
}

func TestLimitsOfWhatJobsAskForCountWhatWaitsAndRuns(t *testing.T) {
	limits := grid(
		func(l *v1alpha1.PoolLimits) { l.Cores, l.Memory = new(int32(100)), new(resource.MustParse("200Gi")) },
	)
	asks := func(jobs int) Demand { return Demand{Jobs: jobs, Cores: 4 * jobs, Memory: 1024 * jobs} }
	in := func(all, waiting int) Part {
		return Part{Open: all, Cores: Requested{all, waiting}, Memory: Requested{all, waiting}}
	}
	use := func(u Usage) Usage {
		for _, p := range u.Namespaces {
			u.Cores, u.Memory = u.Cores+p.Cores.InUse, u.Memory+p.Memory.InUse
		}
		return u
	}
	for name, c := range map[string]struct {
		usage Usage
		jobs  int
		why   Why
		full  string
		alone bool
	}{
		"there is room":                    {Usage{}, 25, Sends, "", false},
		"there is none":                    {use(Usage{Namespaces: map[string]Part{"b": in(80, 0)}}), 6, Limited, "80 of 100 cores in use (limits.cores)", false},
		"more than there are":              {Usage{}, 26, Never, "", false},
		"another's wait for good":          {use(Usage{Namespaces: map[string]Part{"b": in(100, 100)}}), 12, Sends, "", false},
		"more than the share beside these": {use(Usage{Namespaces: map[string]Part{"b": in(100, 100)}}), 13, Limited, "100 of 100 cores in use (limits.cores)", true},
	} {
		t.Run(name, func(t *testing.T) {
			a := limits.Decide(c.usage, "a", asks(c.jobs), noon)
			require.Equal(t, []any{c.why, c.full, c.alone}, []any{a.Why, a.Full, a.Alone})
		})
	}
	require.EqualError(
		t,
		limits.Refuse(asks(26)),
		"queue 26 asks for 104 cores, which is more than the 100 that may be in use in pool grid (limits.cores): make it several HTCJobs, or ask for less",
	)
	require.EqualError(
		t,
		limits.RefuseUncounted(Demand{Jobs: 1, Cores: 1}),
		"limits.memory counts what jobs ask for, in pool grid: write resources.memory, a number and no expression",
	)
	require.NoError(t, limits.RefuseUncounted(asks(1)))
	require.Equal(t, 25, limits.AtOnce(asks(1)))
	require.Equal(t, 2, limits.AtOnce(Demand{Cores: 1, Memory: 100 << 10}))
	require.Zero(t, grid().AtOnce(asks(1)))
}
