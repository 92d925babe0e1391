package submit

import (
	"cmp"
	"fmt"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// DAGMan sends its nodes one by one. Many that depend on nothing in their DAG are made by a factory instead: what is
// sent is a launcher in place of DAGMan (factory.sh), with the same archive, and node n is the proc n of the factory's
// cluster. It lies where DAGMan's would, and gets and leaves the same files. In place of flow.dag the archive has the
// factory's submit description, and a table of what single nodes get.
const fileNodes = "nodes.items"

// independent reports whether a factory can make the nodes: all run, by themselves, and ask for nothing that DAGMan
// does for single ones.
func (g DAG) independent() bool {
	if g.FactoryAbove == 0 || len(g.Nodes) <= g.FactoryAbove || len(g.Steps) != 1 || g.Steps[0].Nodes > 0 ||
		g.Pace != (Pace{}) {
		return false
	}
	for _, n := range g.Nodes {
		if n.Done || n.Priority != nil || len(n.Parents)+len(n.Ended)+len(n.Pulls) > 0 {
			return false
		}
	}
	return true
}

// launcher returns the text of factory.sh, the executable in place of DAGMan.
func (g DAG) launcher() string {
	return fmt.Sprintf(
		"#!/bin/sh\n# Hands the jobs of the HTCWorkflow %s/%s to the schedd.\nnodes=%d\ntag=%s\n%s%s",
		g.Tag.Namespace,
		g.Tag.Name,
		len(g.Nodes),
		ShellQuote(string(g.Tag.NodesConstraint())),
		onHostBody,
		factoryBody,
	)
}

// factory returns the files from which the factory is made, given the checked submit description of the nodes.
func (g DAG) factory(submit string) []File {
	var b, items strings.Builder
	columns := "" // for URLs
	if len(g.Steps[0].outputURLs()) > 0 {
		columns = "jobid, index, "
	}
	for line := range strings.Lines(submit) {
		command, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		switch {
		case command == "initialdir":
			fmt.Fprintf(&b, "%s = %s%s\nlog = %snodes.log\n", command, hereMacro, value, hereMacro)
		case command == "transfer_plugins":
			own := "=" + hereMacro + stepFile(0, "/") + filePlugin
			fmt.Fprintf(&b, "%s = %s\n", command, strings.ReplaceAll(value, "="+filePlugin, own))
		case strings.HasPrefix(line, "queue "):
			fmt.Fprintf(&b, "max_idle = %d\n", cmp.Or(g.MaxIdle, IdleAtOnce))
			if most := atMost(g.MaxJobs, g.Steps[0].MaxJobs); most > 0 {
				fmt.Fprintf(&b, "max_materialize = %d\n", most)
			}
			fmt.Fprintf(&b, "My.%s = %d\nMy.DAGManJobId = $(htcd_launcher)\n", condor.AttrMade, len(g.Nodes))
			fmt.Fprintf(&b, "queue n, %sfiles from %s\n", columns, fileNodes)
		default:
			b.WriteString(line)
		}
	}
	for n, node := range g.Nodes {
		place := ""
		if columns != "" {
			place = fmt.Sprintf("%s %d ", node.jobID(), node.Index)
		}
		fmt.Fprintf(&items, "%d %s%s\n", n, place, strings.Join(g.files(n, nil), ", "))
	}
	return []File{
		{Name: fileNodes, Mode: 0o600, Content: items.String()},
		{Name: fileFactory, Mode: 0o600, Content: b.String()},
	}
}

// atMost returns the smaller one of two limits, of which 0 is none.
func atMost(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
