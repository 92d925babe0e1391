package dagfile

import "strings"

// parent reads PARENT ... CHILD ...
func (r *reader) parent(s *scope, w *words, weak bool) error {
	var sides [2][]*Node // parents, children
	side := 0
	for w.rest != "" {
		name, err := w.next("a node")
		if err != nil {
			return err
		}
		if strings.EqualFold(name, "CHILD") {
			if side == 1 {
				return w.errorf("CHILD stands here twice")
			}
			side = 1
			continue
		}
		if sp := s.spliced[name]; sp != nil {
			sides[side] = append(sides[side], sp.ends(side == 1)...)
			continue
		}
		n, err := s.one(w, name)
		if err != nil {
			return err
		}
		sides[side] = append(sides[side], n)
	}
	switch {
	case side == 0:
		return w.errorf("CHILD is missing")
	case len(sides[0]) == 0:
		return w.errorf("there are no nodes before CHILD")
	case len(sides[1]) == 0:
		return w.errorf("there are no nodes after CHILD")
	}
	return r.join(w, sides[0], sides[1], weak)
}

// join makes each of the parents a parent of each of the children.
func (r *reader) join(w *words, parents, children []*Node, weak bool) error {
	for _, p := range parents {
		for _, c := range children {
			for _, n := range []*Node{p, c} {
				if n.Kind != Job && n.Kind != Subdag {
					return w.errorf("%s is a %s node, and these have neither parents nor children", n.Name, n.Kind)
				}
			}
			if err := r.spend(w.at, 16); err != nil {
				return err
			}
			if key := [2]int{p.id, c.id}; !r.edges[key] {
				if len(r.edges) == maxEdges {
					return w.errorf("there are more than %d edges from here on: that is too large to convert", maxEdges)
				}
				r.edges[key] = true
				r.dag.Edges = append(r.dag.Edges, Edge{p.id, c.id, weak})
				p.parent, c.child = true, true
			}
		}
	}
	return nil
}
