package convert

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/dagsteps"
)

// abort takes over ABORT-DAG-ON NODE CODE [RETURN VALUE], if all nodes of the step have the same.
func (b *dagBuild) abort(s dagfile.Statement, flow *dagsteps.Flow, works []*work) Line {
	words := strings.Fields(s.Rest)
	if len(words) < 2 {
		return Line{Verdict: Cannot, Words: "expected a node and an exit code"}
	}
	code, err := strconv.ParseInt(words[1], 10, 32)
	switch {
	case err != nil || code < 1 || code > 255:
		return Line{
			Verdict: Cannot,
			Words:   "abortExitCodes are exit codes of failures, from 1 to 255",
			Instead: "a script that ends with such a code",
		}
	}
	var returns *int32
	if value, err := strconv.ParseInt(words[len(words)-1], 10, 32); len(words) == 4 && err == nil {
		returns = new(int32(value))
	}
	for i, step := range flow.Steps {
		nodes := slices.Concat(step.Nodes...)
		at := slices.IndexFunc(nodes, func(n *dagfile.Node) bool { return n.Name == words[0] })
		if at < 0 && !strings.EqualFold(words[0], "ALL_NODES") || works[i] == nil {
			continue
		}
		if at >= 0 && !b.abortsAlike(nodes, words[1:]) {
			return Line{Verdict: Cannot, Words: "the nodes of the step " + step.Name + " do not all end the DAG alike",
				Instead: "ABORT-DAG-ON for each of them, or a submit file of its own for the node"}
		}
		if len(works[i].AbortExitCodes) > 0 && !equality.Semantic.DeepEqual(works[i].AbortReturn, returns) {
			return Line{Verdict: Cannot, Words: "another line has the step " + step.Name + " end the DAG with another value",
				Instead: "one RETURN for all ABORT-DAG-ON of a node"}
		}
		works[i].AbortReturn = returns
		if !slices.Contains(works[i].AbortExitCodes, int32(code)) {
			works[i].AbortExitCodes = append(works[i].AbortExitCodes, int32(code))
		}
	}
	if returns != nil {
		return Line{Verdict: Taken, Words: "abortExitCodes, abortReturn"}
	}
	return Line{Verdict: Taken, Words: "abortExitCodes"}
}

// abortsAlike reports whether each of the nodes ends the DAG so: with this code, and perhaps RETURN and a value.
func (b *dagBuild) abortsAlike(nodes []*dagfile.Node, so []string) bool {
	ends := map[string]bool{}
	for _, s := range b.d.Statements {
		words := strings.Fields(s.Rest)
		if s.Command == "ABORT-DAG-ON" && len(words) > 1 && slices.EqualFunc(words[1:], so, strings.EqualFold) {
			ends[words[0]] = true
		}
	}
	return !slices.ContainsFunc(nodes, func(n *dagfile.Node) bool { return !ends[n.Name] })
}
