package graph

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
)

// edgesTable is the table with the edges of spec.graph; the others have the names of steps, which have no slash.
const edgesTable = "/edges"

// The columns of tables of nodes and edges, and the variable with a node's name, with which its row begins.
const (
	columnNode     = "node"
	columnStep     = "step"
	columnPriority = "priority"
	columnParents  = "parents"
	columnChildren = "children"
	columnOutcome  = "outcome"
	variableName   = "jobid="
)

// Read reads the tables of a spec: the variables of its sequences, and the tables for Fill. get returns the text of one
// that lies elsewhere, nil if it cannot be had here: then what depends on it is left out, as are tables that steps
// write.
func Read(
	spec v1alpha1.HTCWorkflowSpec,
	check items.Check,
	get func(v1alpha1.ItemsFrom) ([]byte, error),
) (sequences []string, tables map[string][]string, err error) {
	r := reader{check: check, get: get, tables: map[string][]string{}}
	if s := spec.Sequences; s != nil && (len(s.Items) > 0 || s.ItemsFrom != nil) {
		var inline []v1alpha1.Item
		for _, item := range s.Items {
			inline = append(inline, v1alpha1.Item(item))
		}
		if sequences, err = r.rows("spec.sequences", inline, s.ItemsFrom); err != nil {
			return nil, nil, err
		}
	}
	for i, step := range spec.Steps {
		if each := step.ForEach; each != nil && each.Count == 0 && writtenBy(step) == nil {
			all, err := r.rows(fmt.Sprintf("spec.steps[%d].forEach", i), each.Items, each.ItemsFrom)
			if err != nil {
				return nil, nil, err
			}
			if all != nil {
				r.tables[string(step.Name)] = all
			}
		}
	}
	if spec.Graph != nil {
		err = r.graph(spec)
	}
	return sequences, r.tables, err
}

type reader struct {
	check  items.Check
	get    func(v1alpha1.ItemsFrom) ([]byte, error)
	tables map[string][]string
	nodes  map[string]bool // of spec.graph
	size   int             // bytes of all rows
	unread bool
}

// mostTables is how many bytes the tables of a workflow may have together: they are all in memory at once.
const mostTables = 32 << 20

// rows returns a table that stands in the spec, or in a ConfigMap.
func (r *reader) rows(where string, inline []v1alpha1.Item, from *v1alpha1.ItemsFrom) (all []string, err error) {
	if from == nil {
		if all, err = items.List(inline, r.check); err != nil {
			err = fmt.Errorf("%s.%w", where, err)
		}
		return all, err
	}
	return r.table(where+".itemsFrom", *from, r.check)
}

func (r *reader) table(where string, from v1alpha1.ItemsFrom, check items.Check) ([]string, error) {
	text, err := r.get(from)
	if err != nil {
		return nil, err
	}
	if text == nil {
		r.unread = true
		return nil, nil
	}
	all, err := items.Table(text, items.MostNodes, check)
	for _, row := range all {
		r.size += len(row)
	}
	if err == nil && r.size > mostTables {
		err = fmt.Errorf("with it all tables have more than %d MiB: make it several HTCWorkflows", mostTables>>20)
	}
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", where, from, err)
	}
	return all, err
}

// graph reads the nodes and edges of spec.graph.
func (r *reader) graph(spec v1alpha1.HTCWorkflowSpec) error {
	steps := map[string]bool{}
	for _, s := range spec.Steps {
		steps[string(s.Name)] = true
	}
	r.nodes = map[string]bool{}
	var inline []v1alpha1.Item
	for i, n := range spec.Graph.Nodes {
		item := v1alpha1.Item{columnNode: v1alpha1.ItemValue(n.Name), columnStep: v1alpha1.ItemValue(n.Step)}
		if n.Priority != nil {
			item[columnPriority] = v1alpha1.ItemValue(strconv.Itoa(int(*n.Priority)))
		}
		for name, value := range n.Variables {
			if name == columnNode || name == columnStep || name == columnPriority {
				return fmt.Errorf(
					"spec.graph.nodes[%d].variables: node, step and priority are columns of tables: choose another name than %s",
					i,
					name,
				)
			}
			item[name] = value
		}
		inline = append(inline, item)
	}
	all, err := items.List(inline, r.check)
	if err != nil {
		return fmt.Errorf("spec.graph.nodes: %w", err)
	}
	if err := r.list("spec.graph.nodes", all, steps); err != nil {
		return err
	}
	for i, from := range spec.Graph.NodesFrom {
		where := fmt.Sprintf("spec.graph.nodesFrom[%d]", i)
		all, err := r.table(where, from, r.check)
		if err != nil {
			return err
		}
		if err := r.list(where, all, steps); err != nil {
			return err
		}
	}
	all = nil
	for _, e := range spec.Graph.Edges {
		row := columnChildren + "=" + join(e.Children) + "\n" + columnParents + "=" + join(e.Parents) + "\n"
		if e.Outcome != "" {
			row += columnOutcome + "=" + string(e.Outcome) + "\n"
		}
		all = append(all, row)
	}
	if err := r.join("spec.graph.edges", all); err != nil {
		return err
	}
	for i, from := range spec.Graph.EdgesFrom {
		where := fmt.Sprintf("spec.graph.edgesFrom[%d]", i)
		all, err := r.table(where, from, edgeColumns)
		if err != nil {
			return err
		}
		if err := r.join(where, all); err != nil {
			return err
		}
	}
	if r.unread {
		r.tables = map[string][]string{}
	}
	return nil
}

func join(names []v1alpha1.NodeName) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = string(name)
	}
	return strings.Join(words, " ")
}

// edgeColumns is the check of a table of edges.
func edgeColumns(name, _ string) error {
	if name != columnParents && name != columnChildren && name != columnOutcome {
		return fmt.Errorf(
			"expected the columns %s, %s and perhaps %s, found %q",
			columnParents,
			columnChildren,
			columnOutcome,
			name,
		)
	}
	return nil
}

var nodeRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// list adds nodes to the tables of their steps. Their rows begin with their names.
func (r *reader) list(where string, rows []string, steps map[string]bool) error {
	for i, row := range rows {
		values, rest := take(row, columnNode, columnStep, columnPriority)
		name, step, priority := values[columnNode], values[columnStep], values[columnPriority]
		_, wrong := priorityOf(priority)
		switch {
		case !nodeRE.MatchString(name):
			return fmt.Errorf(
				"%s, row %d: node: expected a name of at most 63 letters, digits and _ . -, found %q",
				where,
				i+1,
				name,
			)
		case !steps[step]:
			return fmt.Errorf(
				"%s, row %d: the node %s is of the step %q, and spec.steps has none of that name",
				where,
				i+1,
				name,
				step,
			)
		case wrong != nil:
			return fmt.Errorf(
				"%s, row %d: priority: expected a number from -1000000 to 1000000, found %q",
				where,
				i+1,
				priority,
			)
		case r.nodes[name]:
			return fmt.Errorf("%s, row %d: there are two nodes %s: give each a name of its own", where, i+1, name)
		}
		r.nodes[name] = true
		r.tables[step] = append(r.tables[step], variableName+strings.TrimSpace(name+" "+priority)+"\n"+rest)
	}
	return nil
}

// priorityOf reads the priority of a node; nil: it has that of its step.
func priorityOf(text string) (*int, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && max(n, -n) > mostPriority {
		err = strconv.ErrRange
	}
	return &n, err
}

const mostPriority = 1_000_000

// join adds edges.
func (r *reader) join(where string, rows []string) error {
	for i, row := range rows {
		values, _ := take(row, columnParents, columnChildren, columnOutcome)
		if outcome := values[columnOutcome]; !v1alpha1.Outcome(outcome).Known() {
			return fmt.Errorf("%s, row %d: outcome: expected Succeeded or Any, found %q", where, i+1, outcome)
		}
		for _, column := range []string{columnParents, columnChildren} {
			names := strings.Fields(values[column])
			if len(names) == 0 {
				return fmt.Errorf(
					"%s, row %d: %s: expected names of nodes, separated by blanks, found none",
					where,
					i+1,
					column,
				)
			}
			for _, name := range names {
				if !r.nodes[name] && !r.unread {
					return fmt.Errorf("%s, row %d: %s: the graph has no node %q", where, i+1, column, name)
				}
			}
		}
		r.tables[edgesTable] = append(r.tables[edgesTable], row)
	}
	return nil
}

// take returns the values of some variables, and the lines of the others.
func take(row string, names ...string) (values map[string]string, rest string) {
	values = map[string]string{}
	var others strings.Builder
	for line := range strings.Lines(row) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		taken := false
		for _, wanted := range names {
			if taken = name == wanted; taken {
				values[name] = value
				break
			}
		}
		if !taken {
			others.WriteString(line)
		}
	}
	return values, others.String()
}
