package layers

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// irregular is a graph in which each node has up to three parents, mostly from those shortly before it.
func irregular(n int) [][]int {
	random := rand.New(rand.NewPCG(1, 2))
	parents := make([][]int, n)
	for i := 8; i < n; i++ {
		for range 1 + random.IntN(3) {
			p := i - 1 - random.IntN(min(i, 30))
			if random.IntN(20) == 0 {
				p = random.IntN(i)
			}
			parents[i] = append(parents[i], p)
		}
	}
	return parents
}

// drawn requires of a placement that everything is to the right of what comes before it and that nothing overlaps.
func drawn(t *testing.T, parents [][]int) ([]Spot, []Line) {
	t.Helper()
	spots, lines := Place(parents)
	require.Len(t, spots, len(parents))
	reached := map[[2]int]bool{}
	for i, l := range lines {
		require.Equal(t, l.From.Column+1, l.To.Column)
		if !l.Passes {
			require.Equal(t, spots[l.Children[0]], l.To)
			reached[[2]int{l.Parent, l.Children[0]}] = true
		}
		for n, s := range spots { // what passes a column lies between its nodes
			if l.Passes && s.Column == l.To.Column {
				require.GreaterOrEqual(t, abs(s.Y-l.To.Y), (1+passing)/2-1e-6, "line %d below node %d", i, n)
			}
		}
	}
	for i, s := range spots {
		require.GreaterOrEqual(t, s.Y, 0.0)
		for _, p := range parents[i] {
			require.Less(t, spots[p].Column, s.Column)
			require.True(t, reached[[2]int{p, i}])
		}
		for k, o := range spots[:i] {
			require.False(t, o.Column == s.Column && abs(o.Y-s.Y) < 1-1e-6, "%d and %d overlap", i, k)
		}
	}
	return spots, lines
}

func abs(x float64) float64 { return max(x, -x) }

func TestThreeHundredNodesAreReadable(t *testing.T) {
	parents := irregular(300)
	drawn(t, parents)
	g := build(columns(parents, childrenOf(parents)), childrenOf(parents))
	before := g.crossings()
	g.order()
	require.Less(t, g.crossings(), before/3, "of %d crossings as the nodes are listed", before)
}

func TestWhatNeedNotCrossDoesNot(t *testing.T) {
	tree := [][]int{nil}
	for i := 1; i < 63; i++ {
		tree = append(tree, []int{(i * 37 % 63) % i}) // its children are not side by side
	}
	for name, parents := range map[string][][]int{
		"a tree": tree, "pairs in another order": {nil, nil, nil, {2}, {0}, {1}}, "a diamond": {nil, {0}, {0}, {1, 2}},
	} {
		drawn(t, parents)
		g := build(columns(parents, childrenOf(parents)), childrenOf(parents))
		g.order()
		require.Zero(t, g.crossings(), name)
	}
}

func TestOddGraphsArePlaced(t *testing.T) {
	chain, fan := make([][]int, 200), [][]int{nil}
	for i := range chain[1:] {
		chain[i+1] = []int{i}
	}
	for range 400 {
		fan = append(fan, []int{0})
	}
	for _, parents := range [][][]int{nil, {nil}, make([][]int, 50), chain, fan, irregular(1000)} {
		drawn(t, parents)
	}
	spots, _ := drawn(t, [][]int{nil, {0}, {1}, {0, 2}, nil})
	require.Equal(t, 3, spots[3].Column)
	require.Equal(t, Spot{0, spots[4].Y}, spots[4], "what no edge joins lies below")
	require.Greater(t, spots[4].Y, spots[0].Y)
}
