package submit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	_ "embed"
)

// DAGMan knows no node that runs however its parents have ended, or though some of them have failed. Those parents are
// successes to it in any case, and so is all before those that may end in any way: POST scripts note their failures,
// and PRE scripts skip what comes after one, or let it fail where nothing that runs in any case depends on it. The last
// node of such a DAG, which is no job, fails if anything has, and so does the DAG.
//
//	a ──> b ──(ended)──> c        a failed: POST notes it, PRE skips b, c runs, E fails
//	      └────────────> d        b failed: POST notes it, PRE lets d fail, c runs
const (
	fileGate = "gate.sh"
	dirBad   = "bad"
)

//go:embed gate.sh
var gateBody string

// hidden returns which nodes are successes to DAGMan in any case; nil: none.
func (g DAG) hidden() []bool {
	var next []int
	for _, n := range g.Nodes {
		next = append(next, n.Ended...)
	}
	if len(next) == 0 && !slices.ContainsFunc(g.Steps, func(s DAGStep) bool { return s.MayFail > 0 }) {
		return nil
	}
	hidden := make([]bool, len(g.Nodes))
	for len(next) > 0 {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		if !hidden[n] {
			hidden[n] = true
			next = append(append(next, g.Nodes[n].Parents...), g.Nodes[n].Ended...)
		}
	}
	for n, node := range g.Nodes {
		hidden[n] = hidden[n] || g.Steps[node.Step].MayFail > 0
	}
	return hidden
}

// gates writes the scripts of nodes, given which are successes in any case.
func (g DAG) gates(b *strings.Builder, hidden []bool) {
	if hidden == nil {
		return
	}
	var ends []int
	for n, node := range g.Nodes {
		if ends = append(ends, node.Ended...); g.Steps[node.Step].MayFail > 0 {
			ends = append(ends, n)
		}
		if node.Done {
			continue
		}
		var before strings.Builder
		of := -1
		for _, p := range node.Parents {
			if !hidden[p] {
				continue
			}
			if step := g.Nodes[p].Step; step != of { // those of one step stand together
				of = step
				fmt.Fprintf(&before, " %d:", g.Steps[step].MayFail)
			}
			before.WriteString(" " + strconv.Itoa(p))
		}
		what := "fail"
		if hidden[n] {
			what = "skip"
			fmt.Fprintf(b, "SCRIPT POST N%d ./%s note %d $RETURN\n", n, fileGate, n)
		}
		if before.Len() > 0 {
			fmt.Fprintf(b, "SCRIPT PRE N%d ./%s %s %d%s\n", n, fileGate, what, n, before.String())
			if hidden[n] {
				fmt.Fprintf(b, "PRE_SKIP N%d 3\n", n)
			}
		}
	}
	fmt.Fprintf(b, "JOB E %s NOOP\nSCRIPT PRE E ./%s end\nPARENT", stepFile(0, ".sub"), fileGate)
	slices.Sort(ends)
	for _, n := range slices.Compact(ends) {
		b.WriteString(" N" + strconv.Itoa(n))
	}
	b.WriteString(" CHILD E\n")
}
