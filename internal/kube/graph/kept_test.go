package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodesThatWereDoneAreKept(t *testing.T) {
	g := &Graph{Steps: []Step{{}, {Pulls: []Pull{{From: 0, Path: "f"}}}, {}}}
	// 0 and 1 are before 2, which pulls from 0; 3 comes after 2.
	nodes := []Node{
		{Step: 0},
		{Step: 2},
		{Step: 1, Parents: []int{0, 1}, Pulls: [][]int{{0}}},
		{Step: 2, Parents: []int{2}},
	}
	const yes, no = true, false
	for name, c := range map[string]struct {
		done []bool
		has  bool
		want []bool
	}{
		"nothing was done":                      {[]bool{no, no, no, no}, yes, []bool{no, no, no, no}},
		"everything was done":                   {[]bool{yes, yes, yes, yes}, no, []bool{yes, yes, yes, yes}},
		"one fails":                             {[]bool{yes, yes, no, no}, yes, []bool{yes, yes, no, no}},
		"one is done after one that runs again": {[]bool{yes, no, yes, yes}, yes, []bool{yes, no, no, no}},
		"what is pulled is gone":                {[]bool{yes, yes, no, no}, no, []bool{no, yes, no, no}},
		"what nobody pulls is gone":             {[]bool{yes, yes, yes, no}, no, []bool{yes, yes, yes, no}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, g.Kept(nodes, c.done, func(from Node, path string) bool {
				require.Equal(t, "f", path)
				return c.has
			}))
		})
	}
}

func TestOfALongChainOfNodesEachIsLookedAtOnce(t *testing.T) {
	g := &Graph{Steps: []Step{{Pulls: []Pull{{Path: "x"}}}}}
	nodes, done, want := make([]Node, MostNodes), make([]bool, MostNodes), make([]bool, MostNodes)
	const source = MostNodes - 1 // all pull from it
	for i := range source {
		nodes[i].Pulls = [][]int{{source}}
		if i < source-1 { // each comes after the next one, and the last of them runs again
			nodes[i].Parents, done[i] = []int{i + 1}, true
		}
	}
	done[source], want[source] = true, true
	looks := 0
	require.Equal(t, want, g.Kept(nodes, done, func(Node, string) bool { looks++; return true }))
	require.Equal(t, MostNodes-1, looks)
}
