package graph

import "slices"

// Kept returns which nodes of a DAG need not run again: those that were done before, as every node before them was. One
// that another pulls from is kept only if what is pulled can still be had from it.
func (g *Graph) Kept(nodes []Node, done []bool, has func(from Node, path string) bool) []bool {
	kept, after := slices.Clone(done), make([][]int, len(nodes))
	var again []int // nodes that run again, and are still to be looked at for what follows from that
	for i, n := range nodes {
		if !done[i] {
			again = append(again, i)
			continue
		}
		for _, before := range [][]int{n.Parents, n.Ended} {
			for _, p := range before {
				after[p] = append(after[p], i)
			}
		}
	}
	drop := func(i int) {
		if kept[i] {
			kept[i], again = false, append(again, i)
		}
	}
	for len(again) > 0 {
		i := again[len(again)-1]
		again = again[:len(again)-1]
		for _, child := range after[i] {
			drop(child)
		}
		for k, pulls := range nodes[i].Pulls {
			for _, from := range pulls {
				if kept[from] && !has(nodes[from], g.Steps[nodes[i].Step].Pulls[k].Path) {
					drop(from)
				}
			}
		}
	}
	return kept
}
