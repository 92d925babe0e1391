package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// settings are a node's variables as statements before and after its submit file; JOB, dag_node_name, RETRY, DAG_STATUS
// and FAILED_COUNT are DAGMan's.
func settings(n *dagfile.Node) (before, after []string) {
	before = []string{"JOB = " + n.Job(), "dag_node_name = " + n.Job(), "RETRY = 0"}
	if n.Kind == dagfile.Final {
		before = append(before, "DAG_STATUS = "+statusPlace, "FAILED_COUNT = "+failedPlace)
	} else {
		before = append(before, "DAG_STATUS = 0", "FAILED_COUNT = 0")
	}
	for _, v := range n.Vars {
		setting := v.Name + " = " + v.Value
		if v.Append {
			after = append(after, setting)
		} else {
			before = append(before, setting)
		}
	}
	return before, after
}

// A table has the variables that differ between nodes of one step, with a row for each node.
type table struct {
	names []string // as the submit file has them
	rows  [][]string
}

// differing is the table of nodes that run the same file.
func differing(nodes []*dagfile.Node) table {
	values := make([]map[string]string, len(nodes)) // by the names in lower case
	names := map[string]string{"job": "JOB", "dag_node_name": "dag_node_name"}
	for i, n := range nodes {
		values[i] = map[string]string{"job": n.Job(), "dag_node_name": n.Job()}
		for _, v := range n.Vars {
			lower := strings.ToLower(v.Name)
			values[i][lower], names[lower] = v.Value, v.Name
		}
	}
	t := table{rows: make([][]string, len(nodes))}
	for _, lower := range slices.Sorted(maps.Keys(names)) {
		if !slices.ContainsFunc(values, func(v map[string]string) bool { return v[lower] != values[0][lower] }) {
			continue
		}
		t.names = append(t.names, names[lower])
		for i := range nodes {
			t.rows[i] = append(t.rows[i], values[i][lower])
		}
	}
	return t
}

// together is the queue statement of a file with a job for each node, if that is what they are: one with one job, of a
// file whose statements are the same for all nodes.
func together(e *submitfile.Expansion, t table) (*submitfile.Jobs, error) {
	if len(e.Clusters) != 1 || len(e.Clusters[0].Queues) != 1 || e.Clusters[0].Queues[0].Items != nil ||
		e.Clusters[0].Queues[0].Len() != 1 {
		return nil, fmt.Errorf("each node has several jobs")
	}
	for _, name := range t.names {
		if e.Asked[strings.ToLower(name)] {
			return nil, fmt.Errorf("%s decides what the file says, and differs from node to node", name)
		}
	}
	for _, s := range e.Statements {
		set := s.Name
		if s.Kind == submitfile.Attribute {
			set = "My." + set
		}
		if slices.ContainsFunc(t.names, func(name string) bool { return strings.EqualFold(name, set) }) {
			return nil, fmt.Errorf("%s: %s is a variable of the nodes, too", s.Position, set)
		}
	}
	return e.Clusters[0].Queues[0].WithItems(t.names, t.rows), nil
}
