package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
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
		"namespace full":                {grid(perNamespace(10)), Usage{Namespaces: map[string]int{"a": 10}}, 1, Limited, "10 of 10 jobs of namespace a open (limits.maxOpenPerNamespace)"},
		"another namespace full":        {rules: grid(perNamespace(10)), usage: Usage{Namespaces: map[string]int{"b": 10}}, jobs: 1},
		"idle limit not reached":        {rules: grid(maxIdle(100)), usage: Usage{Idle: 99}, jobs: 10_000},
		"idle limit reached":            {grid(maxIdle(100)), Usage{Idle: 100}, 1, Limited, "100 of 100 jobs idle (limits.maxIdle)"},
		"idle follows running":          {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20})), usage: Usage{Idle: 19, Running: 100}, jobs: 500},
		"idle follows running, reached": {grid(percent(v1alpha1.IdlePercent{Percent: 20})), Usage{Idle: 20, Running: 100}, 1, Limited, "20 of 20 jobs idle with 100 running (limits.idlePercentOfRunning)"},
		"nothing runs yet":              {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20})), jobs: 1},
		"nothing runs, one is idle":     {grid(percent(v1alpha1.IdlePercent{Percent: 20})), Usage{Idle: 1}, 1, Limited, "1 of 1 jobs idle with 0 running (limits.idlePercentOfRunning)"},
		"at least min":                  {rules: grid(percent(v1alpha1.IdlePercent{Percent: 20, Min: new(int32(10))})), usage: Usage{Idle: 9}, jobs: 1},
		"at most max":                   {grid(percent(v1alpha1.IdlePercent{Percent: 20, Max: new(int32(10))})), Usage{Idle: 10, Running: 1000}, 1, Limited, "10 of 10 jobs idle with 1000 running (limits.idlePercentOfRunning)"},
		"percent of two billion":        {rules: grid(percent(v1alpha1.IdlePercent{Percent: 10_000})), usage: Usage{Idle: 1 << 31, Running: 1 << 31}, jobs: 1},
		"as many held as may be":        {rules: grid(maxHeld(500)), usage: Usage{Held: 500}, jobs: 1},
		"too many held":                 {grid(maxHeld(500)), Usage{Held: 501}, 1, Limited, "501 of at most 500 jobs on hold (limits.maxHeld)"},
		"held by the pool itself":       {rules: grid(maxHeld(0)), usage: Usage{Held: 5, HeldByPool: 5}, jobs: 1},
		"none may be held":              {grid(maxHeld(0)), Usage{Held: 1}, 1, Limited, "1 of at most 0 jobs on hold (limits.maxHeld)"},
		"few sent":                      {rules: grid(newPerMinute(30)), usage: Usage{Sent: []Sent{{noon, 29}}}, jobs: 1000},
		"many sent":                     {grid(newPerMinute(30)), Usage{Sent: []Sent{{noon, 30}}}, 1, Limited, "30 of 30 jobs per minute sent (limits.newPerMinute)"},
		"many on their way":             {grid(newPerMinute(30)), Usage{Sending: 30}, 1, Limited, "30 of 30 jobs per minute sent (limits.newPerMinute)"},
		"many sent long ago":            {rules: grid(newPerMinute(30)), usage: Usage{Sent: []Sent{{noon.Add(-time.Minute), 30}}}, jobs: 1},
		"draining":                      {Rules{Pool: "grid", State: v1alpha1.PoolDraining}, Usage{}, 1, Draining, "the pool is Draining, nothing new is sent until its state is Online"},
		"suspended":                     {Rules{Pool: "grid", State: v1alpha1.PoolSuspended}, Usage{}, 1, Suspended, "the pool is Suspended, nothing new is sent until its state is Online"},
	} {
		t.Run(name, func(t *testing.T) {
			a := try.rules.Decide(try.usage, "a", try.jobs, noon)
			require.Equal(t, try.why, a.Why)
			require.Equal(t, try.full, a.Full)
			require.Equal(t, a.Limit == "maxOpenPerNamespace", a.Alone)
		})
	}
}

func TestAMinuteAfterEnoughWereSentTheNextMayGo(t *testing.T) {
	sent := []Sent{{noon, 10}, {noon.Add(10 * time.Second), 15}, {noon.Add(20 * time.Second), 20}}
	a := grid(newPerMinute(30)).Decide(Usage{Sent: sent}, "a", 1, noon.Add(30*time.Second))
	require.Equal(t, Limited, a.Why)
	require.Equal(t, noon.Add(70*time.Second), a.Again, "the first ten do not suffice")
	require.Equal(t, Sends, grid(newPerMinute(30)).Decide(Usage{Sent: sent}, "a", 1, a.Again).Why)
	a = grid(newPerMinute(30)).Decide(Usage{Sent: sent, Sending: 30}, "a", 1, noon.Add(30*time.Second))
	require.Zero(t, a.Again, "those on their way count until they have been sent")
}

func TestARefusalNamesTheLimitWhereItIsSet(t *testing.T) {
	require.EqualError(t, grid(maxOpen(3)).Refuse(4), "queue 4 is more than the 3 jobs that may be open in pool grid (limits.maxOpen): make it several HTCJobs")
	flags := Rules{Limits: v1alpha1.PoolLimits{MaxQueue: new(int32(3)), MaxOpenPerNamespace: new(int32(5))}}
	require.EqualError(t, flags.Refuse(4), "queue 4 is more than the 3 jobs that one HTCJob may have here (--max-queue): make it several HTCJobs")
	flags.Limits.MaxQueue = nil
	require.EqualError(t, flags.Refuse(6), "queue 6 is more than the 5 jobs that a namespace may have open here (--max-open-per-namespace): make it several HTCJobs")
	require.NoError(t, flags.Refuse(5))
	require.NoError(t, flags.RefuseNodes(4))
	flags.Limits.MaxQueue = new(int32(3))
	require.EqualError(t, flags.RefuseNodes(4), "4 nodes are more than the 3 that one HTCWorkflow may have here (--max-queue): make it several HTCWorkflows")
	require.NoError(t, flags.RefuseNodes(3))
	require.ErrorContains(t, Rules{Pool: "grid", Limits: flags.Limits}.RefuseNodes(4), "in pool grid (limits.maxQueue)")
}
