package dagfile

import (
	"fmt"
	"path"
	"strings"
)

// What a graph may come to. A splice that is spliced ten times, six deep, is a million.
const (
	maxNodes = 100_000
	maxEdges = 1_000_000
	maxWork  = 256 << 20
)

// Read reads the DAG file of that name, and what it splices and includes, with read, as if condor_submit_dag were run
// in dir. What is wrong with one of them is an *Error.
func Read(dir, name string, read func(name string) ([]byte, error)) (*DAG, error) {
	r := &reader{
		read: read, files: map[string][]line{}, open: map[string]bool{}, edges: map[[2]int]bool{},
		dag: &DAG{Limits: map[string]int{}},
	}
	top := newScope(nil, dir)
	if err := r.file(top, name, Place{}); err != nil {
		return nil, err
	}
	return r.finish(top)
}

type reader struct {
	read  func(string) ([]byte, error)
	files map[string][]line
	open  map[string]bool // files that are being read, against recursion
	edges map[[2]int]bool // by the nodes' ids
	nodes int
	work  int // bytes, about
	dag   *DAG
}

// A scope is what names in a file can mean: that of a splice, or of the DAG itself.
type scope struct {
	outer        *scope
	dir          string
	nodes        []*Node
	splices      []*splice
	byName       map[string]*Node
	spliced      map[string]*splice
	descriptions map[string]*Description
	limits       map[string]int
	pins         [2]map[int][]*Node // in, out
}

func newScope(outer *scope, dir string) *scope {
	return &scope{
		outer: outer, dir: dir, byName: map[string]*Node{}, spliced: map[string]*splice{}, limits: map[string]int{},
		descriptions: map[string]*Description{}, pins: [2]map[int][]*Node{{}, {}},
	}
}

// spend counts what reading costs, so that a few files cannot come to more than the memory there is.
func (r *reader) spend(at Place, bytes int) error {
	if r.work += bytes; r.work > maxWork {
		return &Error{at, fmt.Sprintf("names, variables and lines come to more than %d MiB from here on: that is "+
			"too large to convert", maxWork>>20)}
	}
	return nil
}

// file reads a file into a scope. First what defines nodes is read, then everything else, as edges may be written
// before the nodes.
func (r *reader) file(s *scope, name string, from Place) error {
	full := join(s.dir, name)
	if r.open[full] {
		return &Error{from, full + " is read while it is being read: a file must not include or splice itself"}
	}
	all, known := r.files[full]
	if !known {
		text, err := r.read(full)
		if err != nil {
			if from.File != "" {
				return &Error{from, fmt.Sprintf("read %s: %v; names are relative to where condor_submit_dag is run",
					full, err)}
			}
			return fmt.Errorf("read %s: %w", full, err)
		}
		if all, err = lines(full, string(text)); err != nil {
			return err
		}
		r.files[full] = all
		for _, l := range all {
			r.dag.Statements = append(r.dag.Statements, l.Statement)
		}
	}
	r.open[full] = true
	defer delete(r.open, full)
	for _, define := range []bool{true, false} {
		for _, l := range all {
			if defines(l.Command) != define {
				continue
			}
			if err := r.spend(l.Place, 64+len(l.Rest)); err != nil {
				return err
			}
			if err := r.statement(s, &l); err != nil {
				return err
			}
		}
	}
	return r.lift(s)
}

func defines(command string) bool {
	switch command {
	case "JOB", "SUBDAG", "FINAL", "SERVICE", "PROVISIONER", "SUBMIT-DESCRIPTION", "SPLICE", "REJECT":
		return true
	}
	return false
}

// lift makes nodes of splices the file's own. DAGMan does so at the end of every file: after INCLUDE too, so that from
// there on the name of a splice before it means nothing any more.
func (r *reader) lift(s *scope) error {
	for _, sp := range s.splices {
		for category, limit := range sp.limits {
			s.limits[inSplice(sp.name, category)] = limit
		}
		for _, n := range sp.nodes {
			n.Name = sp.name + "+" + n.Name
			if n.Category != "" {
				n.Category = inSplice(sp.name, n.Category)
			}
			if err := r.spend(n.Place, len(n.Name)+len(n.Category)); err != nil {
				return err
			}
			s.nodes = append(s.nodes, n)
			s.byName[n.Name] = n
		}
	}
	s.splices = nil
	clear(s.spliced)
	return nil
}

// inSplice is a category as others see it. One that begins with + is the same in all files.
func inSplice(name, category string) string {
	if strings.HasPrefix(category, "+") {
		return category
	}
	return name + "+" + category
}

// join is the path of a file that is named in that directory.
func join(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// finish puts the graph together: indexes instead of pointers, descriptions instead of their names.
func (r *reader) finish(top *scope) (*DAG, error) {
	d := r.dag
	d.Nodes, d.Limits = top.nodes, top.limits
	index := make([]int, r.nodes)
	for i, n := range d.Nodes {
		index[n.id] = i
		for s := n.scope; s != nil && n.Description == nil && n.Kind != Subdag; s = s.outer {
			if n.Description = s.descriptions[n.Submit]; n.Description != nil {
				n.Submit = ""
			}
		}
		n.scope = nil
	}
	for i := range d.Edges {
		d.Edges[i].Parent, d.Edges[i].Child = index[d.Edges[i].Parent], index[d.Edges[i].Child]
	}
	if err := d.cycle(); err != nil {
		return nil, err
	}
	return d, nil
}

// cycle says whether nodes wait for themselves.
func (d *DAG) cycle() error {
	children, waits := make([][]int, len(d.Nodes)), make([]int, len(d.Nodes))
	for _, e := range d.Edges {
		children[e.Parent] = append(children[e.Parent], e.Child)
		waits[e.Child]++
	}
	var ready []int
	for i := range d.Nodes {
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, c := range children[i] {
			if waits[c]--; waits[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	for i, n := range d.Nodes {
		if waits[i] > 0 {
			return &Error{n.Place, fmt.Sprintf("%s waits for itself, directly or by other nodes: there is a cycle",
				n.Name)}
		}
	}
	return nil
}
