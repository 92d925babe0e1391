package dagfile

import (
	"errors"
	"fmt"
	"io/fs"
)

// Inline puts the DAGs of SUBDAG EXTERNAL whose files are there in the place of their nodes, as if they were splices:
// nodes of one that is called u are u/NODE. The node itself stays as one with Noop, before what was put there. A SUBDAG
// whose file is not there, because a job writes it, stays as it is.
func (d *DAG) Inline(read func(name string) ([]byte, error)) error {
	return d.inline(read, map[string]bool{})
}

func (d *DAG) inline(read func(string) ([]byte, error), open map[string]bool) error {
	for i, n := range d.Nodes[:len(d.Nodes):len(d.Nodes)] {
		if n.Kind != Subdag || n.Noop || n.Done {
			continue
		}
		file := join(n.Dir, n.Submit)
		if _, err := read(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if open[file] {
			return &Error{n.Place, "SUBDAG " + n.Name + " is a DAG that starts itself, and has no end"}
		}
		sub, err := Read(n.Dir, n.Submit, read)
		if err != nil {
			return err
		}
		open[file] = true
		if err := sub.inline(read, open); err != nil {
			return err
		}
		delete(open, file)
		d.put(i, sub)
		if len(d.Nodes) > maxNodes || len(d.Edges) > maxEdges {
			return &Error{n.Place, fmt.Sprintf("with SUBDAG %s there are more than %d nodes or %d edges: that is "+
				"too large to convert", n.Name, maxNodes, maxEdges)}
		}
	}
	return nil
}

// put puts a graph between node i, which then stands for its beginning, and a node without a job, for its end.
func (d *DAG) put(i int, sub *DAG) {
	n := d.Nodes[i]
	n.Noop, n.Inlined = true, true
	end := len(d.Nodes)
	d.Nodes = append(d.Nodes, &Node{Place: n.Place, Kind: Job, Name: n.Name + "/", Noop: true})
	for k := range d.Edges {
		if d.Edges[k].Parent == i {
			d.Edges[k].Parent = end
		}
	}
	first := len(d.Nodes)
	parent, child := make([]bool, len(sub.Nodes)), make([]bool, len(sub.Nodes))
	for _, e := range sub.Edges {
		parent[e.Parent], child[e.Child] = true, true
		d.Edges = append(d.Edges, Edge{first + e.Parent, first + e.Child, e.Weak})
	}
	empty := true
	for k, s := range sub.Nodes {
		s.Name = n.Name + "/" + s.Name
		s.prefix += len(n.Name) + 1
		if s.Category != "" {
			s.Category = n.Name + "/" + s.Category
		}
		d.Nodes = append(d.Nodes, s)
		if s.Kind != Job && s.Kind != Subdag {
			continue
		}
		empty = false
		if !child[k] {
			d.Edges = append(d.Edges, Edge{Parent: i, Child: first + k})
		}
		if !parent[k] {
			d.Edges = append(d.Edges, Edge{Parent: first + k, Child: end})
		}
	}
	if empty {
		d.Edges = append(d.Edges, Edge{Parent: i, Child: end})
	}
	for category, limit := range sub.Limits {
		d.Limits[n.Name+"/"+category] = limit
	}
	known := map[Place]bool{}
	for _, s := range d.Statements {
		known[s.Place] = true
	}
	for _, s := range sub.Statements {
		if !known[s.Place] {
			d.Statements = append(d.Statements, s)
		}
	}
}
