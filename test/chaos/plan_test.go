package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSameSeedIsTheSamePlan(t *testing.T) {
	require.Equal(t, NewPlan(7, 100, true), NewPlan(7, 100, true))
	require.NotEqual(t, NewPlan(7, 100, false).Disturbances, NewPlan(8, 100, false).Disturbances)
}

func TestAPlanHasItsShareOfEverything(t *testing.T) {
	p := NewPlan(1, 300, true)
	require.Len(t, p.Trials, 300)
	shapes := map[string]int{}
	for _, trial := range p.Trials {
		shapes[trial.Shape.Name]++
	}
	for _, s := range Shapes {
		require.GreaterOrEqual(t, shapes[s.Name], 300/len(Shapes), s.Name)
	}
	did := map[string]int{}
	for _, d := range p.Disturbances {
		did[d.Lane+" "+d.Do]++
	}
	for what, least := range map[string]int{
		"htcd kill": 25, "htcd an older ledger": 1, "htcd no ledger": 1, "launcher kill": 10, "feed kill": 2, "feed stop": 2, "feed freeze": 2, "feed an older spool": 2, "schedd an empty queue": 1, "schedd2 kill": 3, "volume nearly full": 5, "foreigner a job of another account with a huge HoldReason": 5, "schedd kill": 5, "schedd stop": 2, "schedd freeze": 2,
		"callbacks stop receiver-net": 3, "callbacks drop, delay and double": 10, "secret wrong password": 2, "secret another account": 2,
	} {
		require.GreaterOrEqual(t, did[what], least, what)
	}
}

func TestDisturbancesOfALaneFollowEachOther(t *testing.T) {
	p := NewPlan(3, 200, true)
	last := p.Trials[len(p.Trials)-1].At
	over := map[string]time.Duration{}
	for _, d := range p.Disturbances {
		require.GreaterOrEqual(t, d.At, over[d.Lane], "%s", d)
		over[d.Lane] = d.At + d.For
		require.LessOrEqual(t, d.At, last+10*time.Second, "%s", d)
	}
	require.True(t, slices.IsSortedFunc(p.Trials, func(a, b Trial) int { return int(a.At - b.At) }))
}

func TestAShapeKnowsHowEachOfItsJobsEnds(t *testing.T) {
	for _, s := range Shapes {
		for _, spec := range []*Spec{&s.Spec, s.Edited} {
			if spec != nil && !spec.refused() {
				require.Len(t, spec.Codes, spec.Queue, s.Name)
			}
		}
	}
}
