package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/submit"
)

func TestDAGManSendsNoMoreNodesInAMinuteThanThePoolAllows(t *testing.T) {
	for perMinute, want := range map[int]submit.Pace{
		1: {Nodes: 1, Seconds: 60}, 5: {Nodes: 1, Seconds: 12}, 6: {Nodes: 1, Seconds: 10}, 7: {Nodes: 1, Seconds: 9},
		59: {Nodes: 9, Seconds: 10},
		60: {Nodes: 1, Seconds: 1}, 100: {Nodes: 5, Seconds: 3}, 600: {Nodes: 10, Seconds: 1},
		5999: {Nodes: 99, Seconds: 1}, 6000: {}, 1 << 30: {},
	} {
		require.Equal(t, want, pace(perMinute), perMinute)
	}
	for perMinute := 1; perMinute < 6000; perMinute++ {
		p := pace(perMinute)
		require.LessOrEqual(t, 60*p.Nodes, perMinute*p.Seconds, perMinute)
		require.Greater(t, 2*60*p.Nodes, perMinute*p.Seconds, perMinute)
	}
}
