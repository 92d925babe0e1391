package dagfile

import "math"

// A splice is a scope with a name in another one.
type splice struct {
	*scope
	name           string
	first, endings []*Node // those without parents, those without children, when its file had been read
}

// splice reads SPLICE NAME FILE [DIR DIRECTORY].
func (r *reader) splice(s *scope, w *words) error {
	name, err := w.next("the name of the splice")
	if err != nil {
		return err
	}
	if err := s.free(w, name); err != nil {
		return err
	}
	file, err := w.path("the DAG file")
	if err != nil {
		return err
	}
	sp := &splice{scope: newScope(s, s.dir), name: name}
	if w.option("DIR") {
		dir, err := w.path("the directory")
		if err != nil {
			return err
		}
		sp.dir = join(s.dir, dir)
	}
	if err := w.end(); err != nil {
		return err
	}
	if err := r.spend(w.at, 1024); err != nil {
		return err
	}
	if err := r.file(sp.scope, file, w.at); err != nil {
		return err
	}
	for _, n := range sp.nodes {
		switch {
		case n.Kind == Final:
			return &Error{n.Place, "a splice cannot have a FINAL node: write it into the file that is submitted"}
		case n.Kind != Job && n.Kind != Subdag:
			continue
		}
		if !n.child {
			sp.first = append(sp.first, n)
		}
		if !n.parent {
			sp.endings = append(sp.endings, n)
		}
	}
	s.splices = append(s.splices, sp)
	s.spliced[name] = sp
	return nil
}

// ends are the nodes of a splice that an edge to it, or from it, is about.
func (sp *splice) ends(children bool) []*Node {
	if children {
		return sp.first
	}
	return sp.endings
}

// pin reads PIN_IN and PIN_OUT NODE NUMBER.
func pin(s *scope, w *words, side int) error {
	name, err := w.next("the node")
	if err != nil {
		return err
	}
	n, err := s.one(w, name)
	if err != nil {
		return err
	}
	number, err := w.number("the number of the pin", 1, math.MaxInt32)
	if err != nil {
		return err
	}
	s.pins[side][number] = append(s.pins[side][number], n)
	return w.end()
}

// connect reads CONNECT SPLICE SPLICE: what is pinned to an output of one is a parent of what is pinned to that input
// of the other.
func (r *reader) connect(s *scope, w *words) error {
	var both [2]*splice
	for i := range both {
		name, err := w.next("the name of a splice")
		if err != nil {
			return err
		}
		if both[i] = s.spliced[name]; both[i] == nil {
			return w.errorf("there is no splice %s", name)
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	out, in := both[0].pins[1], both[1].pins[0]
	if len(in) == 0 || len(out) != len(in) {
		return w.errorf("%s has %d outputs (PIN_OUT) and %s %d inputs (PIN_IN): as many are needed, and one at least",
			both[0].name, len(out), both[1].name, len(in))
	}
	for i := 1; i <= len(in); i++ {
		if out[i] == nil || in[i] == nil {
			return w.errorf("pins are numbered from 1 on without a gap, and number %d is missing in %s or %s", i,
				both[0].name, both[1].name)
		}
		if err := r.join(w, out[i], in[i], false); err != nil {
			return err
		}
	}
	for _, n := range both[1].first {
		if !n.child {
			return w.errorf("%s of splice %s has no parent: add PIN_IN or an edge in its file", n.Name, both[1].name)
		}
	}
	return nil
}
