package convert

import (
	"fmt"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/dagsteps"
)

// mostOfTable is how large a table becomes before another is begun, and mostOfEdge how many names one of its cells has:
// a row has 64 KiB at most.
const (
	mostOfTable = 900 << 10
	mostOfEdge  = 400
)

// A lister makes of nodes that no steps can say the nodes and edges of spec.graph.
type lister struct {
	flow    *dagsteps.Flow
	works   []*work
	bundles *bundler
	names   map[*dagfile.Node][]v1alpha1.NodeName // several for one with queue N
	taken   map[v1alpha1.NodeName]bool
	again   map[string]int           // how many nodes after the first would be called so
	from    [2][]*v1alpha1.ItemsFrom // of nodes, of edges
	graph   v1alpha1.Graph
}

func (b *dagBuild) listed(flow *dagsteps.Flow, works []*work, bundles *bundler) (*v1alpha1.Graph, error) {
	l := &lister{flow: flow, works: works, bundles: bundles, names: map[*dagfile.Node][]v1alpha1.NodeName{},
		taken: map[v1alpha1.NodeName]bool{}, again: map[string]int{}}
	if err := l.nodes(); err != nil {
		return nil, err
	}
	if err := l.edges(); err != nil {
		return nil, err
	}
	b.maps = append(b.maps, bundles.configMaps(b.name)...) // which fills in their names
	for _, from := range l.from[0] {
		l.graph.NodesFrom = append(l.graph.NodesFrom, *from)
	}
	for _, from := range l.from[1] {
		l.graph.EdgesFrom = append(l.graph.EdgesFrom, *from)
	}
	return &l.graph, nil
}

// nodes lists the nodes of all steps.
func (l *lister) nodes() error {
	var all []v1alpha1.GraphNode
	variables, size := 0, 0
	for i, s := range l.flow.Steps {
		nodes, w := s.Nodes[0], l.works[i]
		each := max(1, w.jobs) / len(nodes)
		if each*len(nodes) != max(1, w.jobs) {
			return fmt.Errorf("step %s: its nodes have different numbers of jobs", s.Name)
		}
		for n, node := range nodes {
			for k := range each {
				name := l.name(node, k, each)
				item := v1alpha1.Item{}
				for c, variable := range w.each.names {
					item[variable] = v1alpha1.ItemValue(w.each.rows[n*each+k][c])
					size += itemSize(variable, string(item[variable]))
				}
				variables += 2 + len(item)
				size += len(name) + len(s.Name) + 16
				l.names[node] = append(l.names[node], name)
				all = append(all, v1alpha1.GraphNode{Name: name, Step: v1alpha1.StepName(s.Name), Variables: item})
			}
		}
	}
	widest := 0
	for _, w := range l.works {
		widest = max(widest, len(w.each.names))
	}
	if len(all) <= maxItems && variables <= maxVariables && size <= maxItemBytes && widest <= maxNames {
		for i := range all {
			if len(all[i].Variables) == 0 {
				all[i].Variables = nil
			}
		}
		l.graph.Nodes = all
		return nil
	}
	for _, w := range l.works { // a table for each step, as it has its own columns
		header := append([]string{"node", "step"}, w.each.names...)
		var rows [][]string
		for _, n := range all {
			if n.Step != w.Name {
				continue
			}
			row := []string{string(n.Name), string(n.Step)}
			for _, variable := range w.each.names {
				row = append(row, string(n.Variables[variable]))
			}
			rows = append(rows, row)
		}
		if err := l.tables(0, header, rows); err != nil {
			return err
		}
	}
	return nil
}

// edges lists what comes before what; nodes with the same parents share an edge.
func (l *lister) edges() error {
	var order []string
	children := map[string][]v1alpha1.NodeName{}
	for _, s := range l.flow.Steps {
		for _, node := range s.Nodes[0] {
			var parents []string
			for _, p := range l.flow.Parents[node] {
				for _, name := range l.names[p] {
					parents = append(parents, string(name))
				}
			}
			if len(parents) == 0 {
				continue
			}
			key := strings.Join(parents, " ")
			if children[key] == nil {
				order = append(order, key)
			}
			children[key] = append(children[key], l.names[node]...)
		}
	}
	var rows [][]string
	for _, key := range order {
		for parents := range slices.Chunk(strings.Fields(key), mostOfEdge) {
			for some := range slices.Chunk(children[key], mostOfEdge) {
				rows = append(rows, []string{strings.Join(parents, " "), strings.Trim(fmt.Sprint(some), "[]")})
			}
		}
	}
	names := 0
	for _, row := range rows {
		names += len(strings.Fields(row[0])) + len(strings.Fields(row[1]))
	}
	if len(rows) > maxItems || names > maxVariables {
		return l.tables(1, []string{"parents", "children"}, rows)
	}
	for _, row := range rows {
		l.graph.Edges = append(
			l.graph.Edges,
			v1alpha1.GraphEdge{Parents: nodeNames(row[0]), Children: nodeNames(row[1])},
		)
	}
	return nil
}

func nodeNames(text string) (names []v1alpha1.NodeName) {
	for _, name := range strings.Fields(text) {
		names = append(names, v1alpha1.NodeName(name))
	}
	return names
}

// tables puts rows into ConfigMaps.
func (l *lister) tables(kind int, header []string, rows [][]string) error {
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && (n == 0 || size < mostOfTable) {
			for _, cell := range rows[n] {
				size += len(cell) + 3
			}
			n++
		}
		from := &v1alpha1.ItemsFrom{}
		if bytes, err := l.bundles.table(header, rows[:n], &from.ConfigMapKeyRef); err != nil {
			return fmt.Errorf(
				"a table of its nodes or edges has %d bytes, and there is no room for that: %w",
				bytes,
				err,
			)
		}
		l.from[kind] = append(l.from[kind], from)
		rows = rows[n:]
	}
	return nil
}

// name is what a node is called, or one of its jobs if it has several.
func (l *lister) name(node *dagfile.Node, k, of int) v1alpha1.NodeName {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, node.Name)
	base := strings.TrimLeft(word, "-._")
	base = base[:min(len(base), 48)]
	if base == "" ||
		slices.Contains(
			[]string{"script", "token", "htcd-send", "job.sh", "job.sub", "condor_exec.exe", "tmp", "var"},
			base,
		) {
		base = "node-" + base
	}
	if of > 1 {
		base += fmt.Sprintf("-%d", k)
	}
	name := v1alpha1.NodeName(base)
	for l.taken[name] {
		l.again[base]++
		name = v1alpha1.NodeName(fmt.Sprintf("%s-%d", base, l.again[base]+1))
	}
	l.taken[name] = true
	return name
}
