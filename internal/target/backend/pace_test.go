package backend

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
)

func TestThePaceFollowsTheSchedd(t *testing.T) {
	most := Pace{16, 50}
	for name, c := range map[string]struct {
		now  Pace
		load Load
		want Pace
		why  string
	}{
		"a schedd with time to spare is asked as much as is allowed": {most, Load{DutyCycle: 0.3}, most, ""},
		"one that is always busy is asked half as much":              {most, Load{DutyCycle: 1}, Pace{8, 25}, "it is busy for 100 % of its time (RecentDaemonCoreDutyCycle)"},
		"but never less than this":                                   {Pace{2, 1}, Load{DutyCycle: 0.99}, Pace{2, 1}, "it is busy for 99 % of its time (RecentDaemonCoreDutyCycle)"},
		"nearly busy changes nothing":                                {Pace{8, 25}, Load{DutyCycle: 0.9}, Pace{8, 25}, "it has been busy"},
		"with time again it is asked more":                           {Pace{8, 20}, Load{DutyCycle: 0.5}, Pace{10, 25}, "it has been busy"},
		"up to the most":                                             {Pace{14, 45}, Load{DutyCycle: 0.5}, most, ""},
		"slow answers count as well":                                 {most, Load{Took: 4 * time.Second, Usually: 30 * time.Millisecond}, Pace{8, 25}, "it took 4s to answer what it has answered in 30ms"},
		"not if they are still short":                                {most, Load{Took: time.Second, Usually: 30 * time.Millisecond}, most, ""},
		"nor if they always take so long":                            {most, Load{Took: 4 * time.Second, Usually: 3 * time.Second}, most, ""},
		"what a schedd says may be nonsense":                         {most, Load{DutyCycle: -3}, most, ""},
		"with most questions killed it is asked half as much":        {most, Load{Late: 0.6}, Pace{8, 25}, "60 % of the questions did not end before their deadline"},
		"a few of them change nothing":                               {most, Load{Late: 0.4}, most, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pace, why := most.Next(c.now, c.load)
			require.Equal(t, c.want, pace)
			require.Equal(t, c.why, why)
		})
	}
}

func TestCommandsTakeTurns(t *testing.T) {
	gate := newLimiter(Pace{Commands: 3, PerSecond: 1e6})
	var running, most, long, mostLong atomic.Int64
	note := func(n, top *atomic.Int64) {
		now := n.Add(1)
		for old := top.Load(); now > old && !top.CompareAndSwap(old, now); old = top.Load() {
		}
	}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			isLong := i%2 == 0
			if gate.enter(t.Context(), isLong) != nil {
				return
			}
			note(&running, &most)
			if isLong {
				note(&long, &mostLong)
				long.Add(-1)
			}
			running.Add(-1)
			gate.leave(isLong)
		})
	}
	all.Wait()
	require.LessOrEqual(t, most.Load(), int64(3))
	require.LessOrEqual(t, mostLong.Load(), int64(2))
	require.Zero(t, gate.running+gate.long+len(gate.waiting))
}

func TestAQuestionPassesLongCommandsThatWait(t *testing.T) {
	gate := newLimiter(Pace{Commands: 2, PerSecond: 1e6})
	require.NoError(t, gate.enter(t.Context(), true))
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() { waits <- gate.enter(ctx, true) }()
	require.Eventually(t, func() bool {
		gate.mu.Lock()
		defer gate.mu.Unlock()
		return len(gate.waiting) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, gate.enter(t.Context(), false))
	gate.leave(false)
	cancel()
	require.ErrorIs(t, <-waits, context.Canceled)
	gate.leave(true)
	require.NoError(t, gate.enter(t.Context(), true), "who has gone takes no place")
}

func TestASlowedScheddIsKnownAsSuch(t *testing.T) {
	all := &limiters{}
	at := schedd.Endpoint{Schedd: "s"}
	most := Pace{16, 50}
	all.of(at, most).learn(most, schedd.Daemon{DutyCycle: 1})
	pace, why := all.of(at, most).now()
	require.Equal(t, Pace{8, 25}, pace)
	require.NotEmpty(t, why)
	for range 10 {
		all.of(at, most).learn(most, schedd.Daemon{DutyCycle: 0.1})
	}
	pace, why = all.of(at, most).now()
	require.Equal(t, most, pace)
	require.Empty(t, why)
}
