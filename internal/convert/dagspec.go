package convert

import (
	"cmp"
	"fmt"
	"reflect"
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

	crowded  bool     // as of the assembly
	copied   []string // the files that have what the jobs print
	replaced []string // the outputs in whose place a step after puts one of its own
}

// columns are the variables of scripts that differ, by their names in the environment, with a row for each job or
// sequence.
type columns struct {
	names []string
	rows  [][]string
}

// unfit is a value that no variable can have.
func (w *work) unfit() (string, bool) {
	if w == nil {
		return "", false
	}
	for _, row := range w.each.rows {
		if i := slices.IndexFunc(row, isUnfit); i >= 0 {
			return row[i], true
		}
	}
	return "", false
}

// items are the variables of a step's jobs: in the object, or in a ConfigMap.
func (v columns) items(bundles *bundler) (*v1alpha1.ForEach, error) {
	each, size := &v1alpha1.ForEach{}, 0
	for _, row := range v.rows {
		item := v1alpha1.Item{}
		for k, name := range v.names {
			item[name] = v1alpha1.ItemValue(row[k])
			size += itemSize(name, row[k])
		}
		each.Items = append(each.Items, item)
	}
	if inObject(len(v.rows), len(v.names), size) && len(v.names) <= maxNames {
		return each, nil
	}
	each.Items, each.ItemsFrom = nil, &v1alpha1.ItemsFrom{}
	if n, err := bundles.table(v.names, v.rows, &each.ItemsFrom.ConfigMapKeyRef); err != nil {
		return nil, fmt.Errorf(
			"the variables of its %d jobs have %d bytes, and a ConfigMap holds 1 MiB",
			len(v.rows),
			n,
		)
	}
	return each, nil
}

// workflow puts the steps together.
func (b *dagBuild) workflow(flow *dagsteps.Flow, works []*work) (spec v1alpha1.HTCWorkflowSpec, err error) {
	bundles := newBundler(b.env)
	if flow.Parents != nil {
		for i, s := range flow.Steps {
			works[i].Name = v1alpha1.StepName(s.Name)
			works[i].apart(false)
			spec.Steps = append(spec.Steps, v1alpha1.Step{StepWork: works[i].StepWork})
		}
		spec.Graph, err = b.listed(flow, works, bundles)
		return spec, err
	}
	items := make([]v1alpha1.SequenceItem, flow.Sequences)
	for i, s := range flow.Steps {
		w := works[i]
		step := v1alpha1.Step{StepWork: w.StepWork, Needs: []v1alpha1.Need{}}
		step.Name = v1alpha1.StepName(s.Name)
		for _, k := range s.Needs {
			step.Needs = append(step.Needs, v1alpha1.Need{Step: v1alpha1.StepName(flow.Steps[k].Name)})
		}
		if w.jobs > 1 {
			step.ForEach = &v1alpha1.ForEach{Count: int32(w.jobs)} // #nosec G115 -- at most maxNodes
		}
		switch {
		case len(w.each.names) == 0:
		case flow.Sequences == 1 && w.jobs == 1:
			if step.Job.Environment == nil {
				step.Job.Environment = map[string]v1alpha1.ItemValue{}
			}
			for k, name := range w.each.names {
				step.Job.Environment[name] = v1alpha1.ItemValue(w.each.rows[0][k])
			}
		case flow.Sequences == 1:
			if step.ForEach, err = w.each.items(bundles); err != nil {
				return spec, fmt.Errorf("step %s: %w", s.Name, err)
			}
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
		w.Name = step.Name
		w.apart(step.ForEach != nil)
		spec.Steps = append(spec.Steps, step)
	}
	b.maps = append(b.maps, bundles.configMaps(b.name)...)
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

// apart has what is printed land in the directory of its node where the files of other nodes land beside it, and
// nothing else is said, and so the files that have the same, or whose place another file has in the end.
func (w *work) apart(indexed bool) {
	l := w.Job.Landing
	if l == nil || l.Directory == "" {
		return
	}
	home := v1alpha1.LandingPlace(w.Name) + "/{{item.jobid}}/"
	if indexed {
		home += "{{proc}}/"
	}
	l.Stdout, l.Stderr = cmp.Or(l.Stdout, home+"stdout"), cmp.Or(l.Stderr, home+"stderr")
	for _, file := range slices.Concat(w.copied, w.replaced) {
		if l.Files == nil {
			l.Files = map[string]v1alpha1.LandingPlace{}
		}
		l.Files[file] = home + v1alpha1.LandingPlace(file)
	}
}

// bounded says of all nodes of a step how many jobs are in the queue at a time, which its submit file says of each. A
// step has one limit: what a category says of it stands, if that is not more.
func bounded(flow *dagsteps.Flow, works []*work, t *v1alpha1.Throttle) {
	for i, s := range flow.Steps {
		job := &works[i].Job
		if job.Parallelism == nil {
			continue
		}
		n := min(int64(*job.Parallelism)*int64(len(slices.Concat(s.Nodes...))), maxParallelism)
		if limit, is := t.PerStep[s.Name]; is {
			t.PerStep[s.Name] = v1alpha1.StepLimit(min(int64(limit), n)) // #nosec G115 -- as bounded
		}
		if t.PerStep[s.Name] > 0 || slices.ContainsFunc(t.Together, func(l v1alpha1.SharedLimit) bool {
			return slices.Contains(l.Steps, v1alpha1.StepName(s.Name))
		}) {
			job.Parallelism = nil
			continue
		}
		job.Parallelism = new(int32(n)) // #nosec G115 -- as bounded
	}
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
	if a := n.Abort; a != nil && !n.Apart() && a.Code >= 1 && a.Code <= 255 {
		w.AbortExitCodes = []int32{int32(a.Code)} // #nosec G115 -- as bounded
		if a.Return != a.Code {
			w.AbortReturn = new(int32(a.Return)) // #nosec G115 -- from 0 to 255
		}
	}
	if n.Priority != 0 {
		p := int32(max(-maxPriority, min(n.Priority, maxPriority))) // #nosec G115 -- as bounded
		w.Priority = &p
	}
}

// stepJob is an HTCJob's spec as a step's job. What a step has no field for is named.
func stepJob(spec v1alpha1.HTCJobSpec) (v1alpha1.StepJob, []string) {
	job := v1alpha1.StepJob{Script: spec.Script.Program}
	from, to := reflect.ValueOf(spec), reflect.ValueOf(&job).Elem()
	for i := range to.NumField() {
		if same := from.FieldByName(to.Type().Field(i).Name); same.IsValid() && same.Type() == to.Field(i).Type() {
			to.Field(i).Set(same)
		}
	}
	for name, value := range spec.Environment {
		if job.Environment == nil {
			job.Environment = map[string]v1alpha1.ItemValue{}
		}
		job.Environment[name] = v1alpha1.ItemValue(value)
	}
	var lost []string
	for _, o := range spec.Outputs {
		job.Outputs = append(job.Outputs, v1alpha1.StepOutput{Path: o.Path})
		if o.URL != "" || o.Artifact != "" {
			lost = append(lost, "spec.outputs")
		}
	}
	if spec.Suspend {
		lost = append(lost, "spec.suspend")
	}
	slices.Sort(lost)
	return job, slices.Compact(lost)
}
