package dagfile

import (
	"strings"
)

const allNodes = "ALL_NODES"

// named are the nodes that a name in the file stands for: ALL_NODES are those that are jobs, without those of splices.
func (s *scope) named(w *words, name string) ([]*Node, error) {
	if !strings.EqualFold(name, allNodes) {
		n, err := s.one(w, name)
		return []*Node{n}, err
	}
	var all []*Node
	for _, n := range s.nodes {
		if n.Kind == Job || n.Kind == Subdag {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return nil, w.errorf("there are no nodes that %s could stand for", allNodes)
	}
	return all, nil
}

func (s *scope) one(w *words, name string) (*Node, error) {
	if n := s.byName[name]; n != nil {
		return n, nil
	}
	if s.spliced[name] != nil {
		return nil, w.errorf("%s is a splice: write this into its own file", name)
	}
	if strings.Contains(name, "+") {
		return nil, w.errorf("there is no node %s here; nodes of a splice have no name outside of its file", name)
	}
	return nil, w.errorf("there is no node %s", name)
}

// free says whether a node or a splice may have that name.
func (s *scope) free(w *words, name string) error {
	switch {
	case s.byName[name] != nil:
		return w.errorf("there is a node %s already", name)
	case s.spliced[name] != nil:
		return w.errorf("there is a splice %s already", name)
	}
	return nil
}

// node reads JOB, SUBDAG EXTERNAL, FINAL, SERVICE and PROVISIONER.
func (r *reader) node(s *scope, l *line, w *words) error {
	n := &Node{Place: l.Place, Kind: Kind(l.Command), Dir: s.dir, Description: l.description, scope: s, id: r.nodes}
	if n.Kind == Subdag && !w.option("EXTERNAL") {
		return w.errorf("SUBDAG is followed by EXTERNAL")
	}
	var err error
	if n.Name, err = w.next("the name of the node"); err != nil {
		return err
	}
	for _, reserved := range []string{"PARENT", "CHILD", allNodes} {
		if strings.EqualFold(n.Name, reserved) {
			return w.errorf("a node must not be called %s", n.Name)
		}
	}
	if strings.Contains(n.Name, "+") {
		return w.errorf("the name of a node must not contain +, which stands in names of splices' nodes: rename %s",
			n.Name)
	}
	if err := s.free(w, n.Name); err != nil {
		return err
	}
	if n.Submit, err = w.path("the submit file"); err != nil {
		return err
	}
	if n.Kind != Subdag && strings.HasSuffix(n.Submit, ".condor.sub") {
		return w.errorf("%s is the submit file of a DAG: write SUBDAG EXTERNAL and the name of the DAG file", n.Submit)
	}
	if n.Description != nil {
		n.Submit, w.rest = "", l.closing
	}
	if err := n.options(s, w); err != nil {
		return err
	}
	if err := s.single(w, n.Kind); err != nil {
		return err
	}
	if r.nodes++; r.nodes > maxNodes {
		return w.errorf("there are more than %d nodes from here on: that is too large to convert", maxNodes)
	}
	s.nodes = append(s.nodes, n)
	s.byName[n.Name] = n
	return r.spend(l.Place, 512)
}

func (n *Node) options(s *scope, w *words) error {
	for w.rest != "" {
		switch {
		case w.option("NOOP"):
			n.Noop = true
		case w.option("DONE"): // DAGMan only warns that others cannot be done
			n.Done = n.Kind == Job || n.Kind == Subdag
		case w.option("DIR"):
			dir, err := w.path("the directory")
			if err != nil {
				return err
			}
			if n.Dir = join(s.dir, dir); n.Dir == "." {
				n.Dir = ""
			}
		default:
			return w.end()
		}
	}
	return nil
}

// single says whether there may be one more node of a kind.
func (s *scope) single(w *words, kind Kind) error {
	if kind != Final && kind != Provisioner {
		return nil
	}
	for _, n := range s.nodes {
		if n.Kind == kind {
			return w.errorf("there can be one %s node, and %s is one", kind, n.Name)
		}
	}
	return nil
}

func describe(s *scope, l *line, w *words) error {
	name, err := w.next("the name of the description")
	if err != nil {
		return err
	}
	if l.description == nil {
		return w.errorf("after the name stands {, and the description on the lines after it, until }")
	}
	if s.descriptions[name] != nil {
		return w.errorf("there is a description %s already: DAGMan 23 takes the first and 25 the last, so remove one",
			name)
	}
	s.descriptions[name] = l.description
	w.rest = l.closing
	return w.end()
}
