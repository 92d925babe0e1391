package convert

import (
	"slices"
	"strconv"
	"strings"

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
	case len(words) == 4 && words[3] == "0":
		return Line{Verdict: Cannot, Words: "a workflow that is aborted has failed, and RETURN 0 calls it a success",
			Instead: "a rule with the action Finish, by a result of the script"}
	}
	for i, step := range flow.Steps {
		nodes := slices.Concat(step.Nodes...)
		at := slices.IndexFunc(nodes, func(n *dagfile.Node) bool { return n.Name == words[0] })
		if at < 0 && !strings.EqualFold(words[0], "ALL_NODES") || works[i] == nil {
			continue
		}
		if at >= 0 && !b.abortsAlike(nodes, words[1]) {
			return Line{Verdict: Cannot, Words: "the nodes of the step " + step.Name + " do not all end the DAG with this code",
				Instead: "ABORT-DAG-ON for each of them, or a submit file of its own for the node"}
		}
		if !slices.Contains(works[i].AbortExitCodes, int32(code)) {
			works[i].AbortExitCodes = append(works[i].AbortExitCodes, int32(code))
		}
	}
	return Line{Verdict: Taken, Words: "abortExitCodes"}
}

// abortsAlike reports whether each of the nodes ends the DAG with this code.
func (b *dagBuild) abortsAlike(nodes []*dagfile.Node, code string) bool {
	ends := map[string]bool{}
	for _, s := range b.d.Statements {
		if words := strings.Fields(s.Rest); s.Command == "ABORT-DAG-ON" && len(words) > 1 && words[1] == code {
			ends[words[0]] = true
		}
	}
	return !slices.ContainsFunc(nodes, func(n *dagfile.Node) bool { return !ends[n.Name] })
}
