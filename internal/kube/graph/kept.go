package graph

import "slices"

// Kept returns which nodes of a DAG need not run again: those that were done before, as every node before them was. One
// that another pulls from is kept only if what is pulled can still be had from it.
func (g *Graph) Kept(nodes []Node, done []bool, has func(from Node, path string) bool) []bool {
	kept := slices.Clone(done)
	for changed := true; changed; {
		changed = false
		again := func(p int) bool { return !kept[p] }
		drop := func(i int) { kept[i], changed = false, true }
		for i, n := range nodes {
			if kept[i] && (slices.ContainsFunc(n.Parents, again) || slices.ContainsFunc(n.Ended, again)) {
				drop(i)
			}
		}
		for i, n := range nodes {
			for k := range n.Pulls {
				if kept[i] {
					break
				}
				for _, from := range n.Pulls[k] {
					if kept[from] && !has(nodes[from], g.Steps[n.Step].Pulls[k].Path) {
						drop(from)
					}
				}
			}
		}
	}
	return kept
}
