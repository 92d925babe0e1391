package convert

import (
	"fmt"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/dagsteps"
)

// work is what a step does.
type work struct {
	v1alpha1.StepWork
	jobs int     // in each sequence
	each columns // of its jobs or, if it has one in each sequence, of the sequences
}

// columns are the variables of scripts that differ, by their names in the environment, with a row for each job or
// sequence.
type columns struct {
	names []string
	rows  [][]string
}

// maxCases bounds the lines with which a script chooses its variables by its number.
const maxCases = 200_000

// cases is the beginning of a script whose variables differ from number to number.
func (v columns) cases() (string, error) {
	var b strings.Builder
	b.WriteString("case $HTCPROCID in\n")
	for i, row := range v.rows {
		fmt.Fprintf(&b, "%d)", i)
		for k, value := range row {
			b.WriteString(" " + v.names[k] + "=" + quote(value))
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("esac\nexport " + strings.Join(v.names, " ") + "\n")
	if b.Len() > maxCases {
		return "", fmt.Errorf("the variables of its %d jobs come to %d bytes, and there is room for %d", len(v.rows),
			b.Len(), maxCases)
	}
	return b.String(), nil
}

// workflow puts the steps together.
func workflow(flow *dagsteps.Flow, works []*work) (v1alpha1.HTCWorkflowSpec, error) {
	spec := v1alpha1.HTCWorkflowSpec{}
	items := make([]v1alpha1.SequenceItem, flow.Sequences)
	for i, s := range flow.Steps {
		w := works[i]
		step := v1alpha1.Step{StepWork: w.StepWork, Needs: []v1alpha1.StepName{}}
		step.Name = v1alpha1.StepName(s.Name)
		for _, k := range s.Needs {
			step.Needs = append(step.Needs, v1alpha1.StepName(flow.Steps[k].Name))
		}
		if w.jobs > 1 {
			step.ForEach = &v1alpha1.ForEach{Count: int32(w.jobs)} // #nosec G115 -- at most maxNodes
		}
		switch {
		case len(w.each.names) == 0:
		case flow.Sequences == 1:
			cases, err := w.each.cases()
			if err != nil {
				return spec, fmt.Errorf("step %s: %w", s.Name, err)
			}
			step.Job.Script.Source = cases + step.Job.Script.Source
		default:
			for k, row := range w.each.rows {
				for j, name := range w.each.names {
					if items[k] == nil {
						items[k] = v1alpha1.SequenceItem{}
					}
					items[k][name] = v1alpha1.ItemValue(row[j])
				}
			}
		}
		spec.Steps = append(spec.Steps, step)
	}
	switch {
	case flow.Sequences == 1:
	case items[0] == nil:
		count := int32(flow.Sequences) // #nosec G115 -- at most maxNodes
		spec.Sequences = &v1alpha1.Sequences{Count: &count}
	default:
		spec.Sequences = &v1alpha1.Sequences{Items: items}
	}
	return spec, nil
}

// retried adds what the DAG says of a node to what its submit file says: a job is tried as often as both together say.
func (w *work) retried(n *dagfile.Node) {
	if n.Retries > 0 && n.Retries <= maxRetries {
		tries := int32(n.Retries) + 1 // #nosec G115 -- at most maxRetries
		if w.Retries != nil {
			tries *= *w.Retries + 1
		}
		again := min(tries-1, maxRetries)
		w.Retries = &again
		if n.UnlessExit != 0 {
			w.Job.HTCOpts = strings.TrimSpace(w.Job.HTCOpts + fmt.Sprintf("\nretry_until = %d", n.UnlessExit))
		}
	}
	if n.Priority != 0 {
		p := int32(max(-maxPriority, min(n.Priority, maxPriority))) // #nosec G115 -- as bounded
		w.Priority = &p
	}
}

// stepJob is an HTCJob's spec as a step's job. What a step has no field for is named.
func stepJob(spec v1alpha1.HTCJobSpec) (v1alpha1.StepJob, []string) {
	var lost []string
	j := v1alpha1.StepJob{
		Script: spec.Script.Program, HTCOpts: spec.HTCOpts, Inputs: spec.Inputs, Credentials: spec.Credentials,
		Resources:       spec.Resources,
		AccountingGroup: spec.AccountingGroup, Requirements: spec.Requirements, SuccessExitCodes: spec.SuccessExitCodes,
		MemoryRetry: spec.MemoryRetry, Checkpoint: spec.Checkpoint, Deadlines: spec.Deadlines,
	}
	for name, value := range spec.Environment {
		if j.Environment == nil {
			j.Environment = map[string]v1alpha1.ItemValue{}
		}
		j.Environment[name] = v1alpha1.ItemValue(value)
	}
	for _, o := range spec.Outputs {
		j.Outputs = append(j.Outputs, v1alpha1.StepOutput{Path: o.Path})
		if o.URL != "" || o.Artifact != "" {
			lost = append(lost, "spec.outputs")
		}
	}
	if spec.Suspend {
		lost = append(lost, "spec.suspend")
	}
	slices.Sort(lost)
	return j, slices.Compact(lost)
}
