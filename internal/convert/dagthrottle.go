package convert

import (
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/dagsteps"
)

// mostJobs is the largest number of a throttle.
const mostJobs = 100_000

// configured takes the throttles from DAGMan's configuration file.
func configured(text []byte, t *v1alpha1.Throttle) Line {
	var others []string
	for line := range strings.Lines(strings.NewReplacer("\\\r\n", "", "\\\n", "").Replace(string(text))) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, is := strings.Cut(line, "=")
		if !is { // include, use, if
			others = append(others, line)
			continue
		}
		name, value = strings.ToUpper(strings.TrimSpace(name)), strings.TrimSpace(value)
		n, err := strconv.ParseInt(value, 10, 32)
		limit := int32(min(max(n, 0), mostJobs))
		switch {
		case err == nil && name == "DAGMAN_MAX_JOBS_SUBMITTED":
			if t.MaxJobs = nil; n > 0 {
				t.MaxJobs = &limit
			}
		case err == nil && name == "DAGMAN_MAX_JOBS_IDLE":
			if limit == 0 { // as many as there are
				limit = mostJobs
			}
			t.MaxIdle = &limit
		default:
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		return Line{Verdict: Cannot, Words: "htcd configures DAGMan, and " + strings.Join(others, ", ") +
			" is not taken over", Instead: "throttle of the workflow for what bounds its jobs"}
	}
	return Line{Verdict: Taken, Words: "throttle"}
}

// categoryLine takes over the limit of a category if its nodes are exactly those of one step.
func categoryLine(category string, limit int, d *dagfile.DAG, flow *dagsteps.Flow, jobs func(step int) int,
	t *v1alpha1.Throttle) Line {
	var nodes []*dagfile.Node
	for _, n := range d.Nodes {
		if n.Category == category && n.Kind == dagfile.Job && !n.Noop && !n.Done {
			nodes = append(nodes, n)
		}
	}
	if slices.ContainsFunc(d.Nodes, func(n *dagfile.Node) bool {
		return n.Category == category && n.Kind == dagfile.Subdag && !n.Done
	}) {
		return Line{Verdict: Cannot, Words: "steps have limits, not several of them together as one DAG",
			Instead: "CATEGORY and MAXJOBS of the nodes in the files of SUBDAG"}
	}
	if len(nodes) == 0 {
		return Line{Verdict: Moot, Words: "no node of this category runs"}
	}
	if limit == 0 {
		return Line{Verdict: Cannot, Words: "MAXJOBS 0 lets no node of the category run",
			Instead: "leave the nodes out, or a number of 1 or more"}
	}
	var steps []v1alpha1.StepName
	each := 1
	for i, s := range flow.Steps { // the nodes of a step are of one category
		if s.Nodes[0][0].Category == category {
			steps, each = append(steps, v1alpha1.StepName(s.Name)), max(each, jobs(i))
		}
	}
	most := v1alpha1.StepLimit(min(limit*each, mostJobs))
	if len(steps) > 1 {
		t.Together = append(t.Together, v1alpha1.SharedLimit{Steps: steps, MaxJobs: most})
		return Line{Verdict: Taken, Words: "throttle.together"}
	}
	if t.PerStep == nil {
		t.PerStep = map[string]v1alpha1.StepLimit{}
	}
	t.PerStep[string(steps[0])] = most
	return Line{Verdict: Taken, Words: "throttle.perStep." + string(steps[0])}
}
