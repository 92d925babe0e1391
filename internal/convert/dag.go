package convert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/dagsteps"
	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// errRefused means that the lines say why there is no manifest.
var errRefused = errors.New("refused")

// dagBuild makes an HTCWorkflow of a DAG file.
type dagBuild struct {
	env     Env
	options Options
	name    string
	file    string
	d       *dagfile.DAG
	lines   map[submitfile.Position]Line
	maps    []corev1.ConfigMap
	labels  map[string]string      // attributes of DAGMan's own job, as annotations
	ran     map[dagfile.Place]Line // what has become of PRE and POST scripts
}

// DAG converts a DAG file, as condor_submit_dag reads it in the current directory.
func DAG(file string, env Env, options Options) (Result, error) {
	b := &dagBuild{env: env, options: options, name: options.Name, file: file, lines: map[submitfile.Position]Line{}}
	if b.name == "" {
		b.name = kubernetesName(strings.TrimSuffix(path.Base(file), path.Ext(file)))
	}
	result := Result{Name: b.name}
	d, err := dagfile.Read("", file, env.ReadFile)
	if err == nil {
		err = d.Inline(env.ReadFile)
	}
	var wrong *dagfile.Error
	if errors.As(err, &wrong) {
		result.Lines = []Line{{Position: position(wrong.Place), Text: env.textAt(wrong.Place), Verdict: Cannot,
			Words: wrong.Message}}
		return result, nil
	}
	if err != nil {
		return result, err
	}
	b.d = d
	if !options.ScriptsInJobs {
		for _, n := range d.Nodes {
			n.Pre, n.Post = nil, nil
		}
	}
	w, err := b.build()
	if err == nil {
		result.Workflow, result.ConfigMaps = w, [][]corev1.ConfigMap{b.maps}
	} else if !errors.Is(err, errRefused) {
		b.say(dagfile.Place{File: file}, Line{Verdict: Cannot, Words: err.Error(),
			Instead: "several DAGs, each a workflow of its own"})
	}
	for _, l := range b.lines {
		result.Lines = append(result.Lines, l)
	}
	sortLines(result.Lines, file)
	return result, nil
}

// textAt is a line of a file.
func (e Env) textAt(at dagfile.Place) string {
	text, err := e.ReadFile(at.File)
	lines := strings.Split(string(text), "\n")
	if err != nil || at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(lines[at.Line-1], "?"))
}

// say keeps the worst that is said of a line.
func (b *dagBuild) say(at dagfile.Place, l Line) {
	l.Position = position(at)
	b.merge([]Line{l})
}

func (b *dagBuild) merge(lines []Line) {
	for _, l := range lines {
		before, said := b.lines[l.Position]
		text := cmp.Or(l.Text, before.Text)
		if said && !worse(l.Verdict, before.Verdict) {
			l = before
		}
		l.Text = text
		b.lines[l.Position] = l
	}
}

// build tries with as few steps as there can be, if that does not do with one for each node, and at last with a list of
// the nodes: why that does not do either is the error.
func (b *dagBuild) build() (w *v1alpha1.HTCWorkflow, err error) {
	for _, find := range []func(*dagfile.DAG) (*dagsteps.Flow, error){dagsteps.Few, dagsteps.Each, dagsteps.List} {
		var flow *dagsteps.Flow
		if flow, err = find(b.d); err == nil {
			b.lines, b.maps, b.labels, b.ran = map[submitfile.Position]Line{}, nil, nil, map[dagfile.Place]Line{}
			w, err = b.with(flow)
		}
		if err == nil || errors.Is(err, errRefused) {
			return w, err
		}
	}
	return nil, err
}

func (b *dagBuild) with(flow *dagsteps.Flow) (*v1alpha1.HTCWorkflow, error) {
	if len(flow.Steps) == 0 {
		b.say(dagfile.Place{File: b.file}, Line{Verdict: Cannot, Words: "no node of it runs",
			Instead: "a DAG with a JOB that is not DONE and not NOOP"})
		return nil, errRefused
	}
	steppers := make([]*stepper, len(flow.Steps))
	works := make([]*work, len(flow.Steps))
	refused := false
	for i, s := range flow.Steps {
		p := puller{flow: flow, steppers: steppers, works: works, step: i, moves: map[v1alpha1.Pull]string{}}
		stepper, err := b.step(slices.Concat(s.Nodes...), &p)
		if errors.Is(err, errRefused) {
			refused = true
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("step %s: %w", s.Name, err)
		}
		steppers[i], works[i] = stepper, stepper.work(nil)
		if len(p.pulls) > maxPulls {
			stepper.a.lose(fmt.Sprintf("a step pulls at most %d files of the steps before it", maxPulls),
				"an archive, or a directory, of what a node leaves", "transfer_input_files")
			p.pulls = p.pulls[:maxPulls]
		}
		works[i].Pull = p.pulls
		if works[i].crowded {
			return nil, fmt.Errorf("step %s: its nodes have more than %d input files together; an archive that all "+
				"of them have would do", s.Name, maxStepInputs)
		}
		switch err := p.meet(works[i].Job.Inputs); {
		case err == nil:
		case flow.Single():
			stepper.a.lose(err.Error(), "another name for one of them, where it is made", "transfer_input_files")
		default:
			return nil, fmt.Errorf("step %s: %w", s.Name, err)
		}
	}
	for i, s := range flow.Steps { // what steps after have made of them, too
		if works[i] == nil {
			continue
		}
		if flow.Sequences > 1 && len(s.Nodes[0]) > 1 && works[i].each.names != nil {
			return nil, fmt.Errorf("step %s: it has several nodes in each sequence, with variables of their own", s.Name)
		}
		p := puller{flow: flow, steppers: steppers, works: works, step: i}
		for _, k := range p.before() {
			works[k].replaced = append(works[k].replaced, p.replaced(k)...)
		}
		if file, is := steppers[i].rewrites(works[i]); is {
			return nil, fmt.Errorf("step %s: its jobs change what they get, such as %s, each by another name", s.Name, file)
		}
	}
	if !refused && flow.Sequences > 1 {
		renamed, taken := conflicts(works)
		for i, s := range flow.Steps {
			pulls, replaced := works[i].Pull, works[i].replaced
			rename := map[string]string{}
			for _, name := range renamed {
				to := name + "_" + strings.ReplaceAll(s.Name, "-", "_")
				for taken[to] { // steps may be called a-b and a_b
					to += "_"
				}
				rename[name], taken[to] = to, true
			}
			works[i] = steppers[i].work(rename)
			works[i].Pull, works[i].jobs, works[i].replaced = pulls, len(s.Nodes[0]), replaced
		}
	}
	for i, w := range works {
		if value, is := w.unfit(); is && !refused {
			return nil, fmt.Errorf("step %s: %.60q cannot be a variable's value", flow.Steps[i].Name, value)
		}
	}
	w := &v1alpha1.HTCWorkflow{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.WorkflowKind},
		ObjectMeta: metav1.ObjectMeta{Name: b.name},
	}
	finally, final, err := b.finally(flow)
	refused = refused || err != nil
	for _, s := range append(steppers, final) {
		if s != nil {
			refused = refused || s.refused
			b.merge(s.said())
			b.scripted(s)
		}
	}
	throttle := b.statements(flow, works)
	w.Annotations = b.labels
	if refused {
		return nil, errRefused
	}
	for i, s := range flow.Steps {
		works[i].retried(s.Nodes[0][0])
	}
	bounded(flow, works, &throttle)
	spec, err := b.workflow(flow, works)
	if err != nil {
		return nil, err
	}
	if finally != nil {
		spec.Finally = &finally.StepWork
	}
	if throttle.MaxIdle != nil || throttle.MaxJobs != nil || throttle.PerStep != nil || throttle.Together != nil {
		spec.Throttle = &throttle
	}
	if err := b.table(spec.Sequences); err != nil {
		return nil, err
	}
	for _, s := range append(steppers, final) {
		if s != nil {
			b.maps = s.configMaps(b.name, b.maps)
		}
	}
	w.Spec = spec
	return w, nil
}

// conflicts are the names of variables that steps set to different values in the same sequence, or in their
// environment, and all names.
func conflicts(works []*work) (renamed []string, all map[string]bool) {
	seen, all := map[string][]string{}, map[string]bool{}
	for _, w := range works {
		for k, name := range w.each.names {
			all[name] = true
			var column []string
			for _, row := range w.each.rows {
				column = append(column, row[k])
			}
			before, there := seen[name]
			if there && !slices.Equal(before, column) && !slices.Contains(renamed, name) {
				renamed = append(renamed, name)
			}
			seen[name] = column
		}
	}
	for _, w := range works { // whose variables those of a sequence would replace
		for name := range w.Job.Environment {
			if all[name] = true; seen[name] != nil && !slices.Contains(renamed, name) {
				renamed = append(renamed, name)
			}
		}
	}
	return renamed, all
}

// finally converts the FINAL node.
func (b *dagBuild) finally(flow *dagsteps.Flow) (*work, *stepper, error) {
	i := slices.IndexFunc(b.d.Nodes, func(n *dagfile.Node) bool { return isFinal(n) && !n.Noop })
	if i < 0 {
		return nil, nil, nil
	}
	n := b.d.Nodes[i]
	s, err := b.step([]*dagfile.Node{n}, nil)
	if err != nil {
		return nil, nil, errRefused
	}
	w := s.work(nil)
	if w.jobs > 1 {
		b.say(n.Place, Line{Verdict: Cannot, Words: "finally is one job", Instead: "queue without a number"})
		return nil, s, errRefused
	}
	w.Name = v1alpha1.StepName(dagsteps.Word(n.Name))
	if w.Name == "" || slices.ContainsFunc(flow.Steps, func(s dagsteps.Step) bool { return s.Name == string(w.Name) }) {
		w.Name = "finally"
	}
	w.apart(false)
	return w, s, nil
}

// isFinal: that of a DAG in the DAG, whose name has a /, runs at the end of that DAG.
func isFinal(n *dagfile.Node) bool { return n.Kind == dagfile.Final && !strings.Contains(n.Name, "/") }

// table puts the items of very many sequences into a ConfigMap.
func (b *dagBuild) table(s *v1alpha1.Sequences) error {
	if s == nil || len(s.Items) == 0 {
		return nil
	}
	names, size := map[string]bool{}, 0
	for _, item := range s.Items {
		for name, value := range item {
			names[name] = true
			size += itemSize(name, string(value))
		}
	}
	if len(names) > maxNames {
		return fmt.Errorf("its sequences differ in %d variables, and an item has at most %d", len(names), maxNames)
	}
	if inObject(len(s.Items), len(names), size) {
		return nil
	}
	header, rows := slices.Sorted(maps.Keys(names)), make([][]string, len(s.Items))
	for i, item := range s.Items {
		for _, name := range header {
			rows[i] = append(rows[i], string(item[name]))
		}
	}
	bundles := newBundler(b.env)
	s.ItemsFrom = &v1alpha1.ItemsFrom{}
	if n, err := bundles.table(header, rows, &s.ItemsFrom.ConfigMapKeyRef); err != nil {
		return fmt.Errorf("the variables of its %d sequences have %d bytes, and a ConfigMap holds 1 MiB", len(rows), n)
	}
	b.maps = append(b.maps, bundles.configMaps(b.name)...)
	s.Items = nil
	return nil
}

// statements says what has become of the statements of the DAG files, and takes their throttles.
func (b *dagBuild) statements(flow *dagsteps.Flow, works []*work) v1alpha1.Throttle {
	var throttle v1alpha1.Throttle
	limits := map[string]Line{}
	steps := map[*dagfile.Node]string{}
	for _, s := range flow.Steps {
		for _, n := range slices.Concat(s.Nodes...) {
			steps[n] = s.Name
		}
	}
	at, named := placesOf(b.d.Nodes), map[string][]*dagfile.Node{}
	for _, n := range b.d.Nodes {
		for _, name := range namesOf(n) {
			named[name] = append(named[name], n)
		}
		if isFinal(n) {
			steps[n] = "finally"
		}
	}
	for _, s := range b.d.Statements {
		if l, same := dagVerdicts[s.Command]; same {
			b.tell(s, l)
			continue
		}
		switch s.Command {
		case "SCRIPT":
			b.tell(s, b.script(s, at[s.Place]))
		case "SET_JOB_ATTR":
			b.tell(s, b.attribute(s.Rest))
		case "CONFIG":
			file := strings.Trim(s.Rest, `"`)
			text, err := b.env.ReadFile(file)
			if err != nil {
				b.tell(s, Line{Verdict: Cannot, Words: fmt.Sprintf("read %s: %v", file, err),
					Instead: "throttle of the workflow for what bounds its jobs"})
				continue
			}
			b.tell(s, configured(text, &throttle))
		case "CATEGORY":
			b.tell(s, Line{Verdict: Taken, Words: "MAXJOBS says what becomes of it"})
		case "MAXJOBS":
			b.tell(s, b.maxJobs(s, flow, works, &throttle, limits))
		case "RETRY", "PRIORITY", "ABORT-DAG-ON":
			word := strings.Fields(s.Rest)[0]
			nodes := named[word]
			if strings.EqualFold(word, "ALL_NODES") {
				nodes = b.d.Nodes
			}
			if s.Command == "ABORT-DAG-ON" {
				nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *dagfile.Node) bool {
					return n.Abort == nil || n.Abort.Place != s.Place || n.Done || n.Noop && n.Kind == dagfile.Job
				})
				if len(nodes) == 0 {
					b.tell(s, Line{Verdict: Moot,
						Words: "it is that of no node which runs: of several for one DAGMan follows the last"})
				}
			}
			for _, n := range nodes {
				b.tell(s, settingLines[s.Command](n))
			}
		default: // a node
			for _, n := range at[s.Place] {
				b.tell(s, nodeLine(n, steps[n]))
			}
		}
	}
	return throttle
}

// namesOf are the names that statements may have for a node: its own, and those in the DAGs that it is spliced from.
func namesOf(n *dagfile.Node) []string {
	names := []string{n.Name}
	for i, c := range n.Name {
		if c == '+' || c == '/' {
			names = append(names, n.Name[i+1:])
		}
	}
	return names
}

// attribute makes an attribute of DAGMan's own job an annotation: HTCondor only shows it.
func (b *dagBuild) attribute(setting string) Line {
	name, value, _ := strings.Cut(setting, "=")
	key := "attribute.htc.cern.ch/" + strings.TrimSpace(name)
	value = strings.TrimSpace(value)
	if x, err := classad.ParseExpr(value); err == nil {
		if text, is := x.(*classad.Literal); is && text.Value.Kind() == classad.String {
			value, _ = text.Value.Str()
		}
	}
	before, said := b.labels[key]
	switch {
	case len(validation.IsQualifiedName(key)) > 0:
		return Line{Verdict: Cannot, Words: "the attribute would be an annotation, and none can be called " + key,
			Instead: "a name of at most 63 letters, digits and _ . -"}
	case said && before != value:
		return Line{Verdict: Cannot, Words: "the workflow has one annotation " + key + ", and another line gives it " +
			before, Instead: "another name"}
	case b.labels == nil:
		b.labels = map[string]string{}
	}
	b.labels[key] = value
	return Line{Verdict: Taken, Words: "the workflow's annotation " + key}
}

// placesOf has the nodes of each statement that makes a node or gives it a script, by the statement's place.
func placesOf(nodes []*dagfile.Node) map[dagfile.Place][]*dagfile.Node {
	at := map[dagfile.Place][]*dagfile.Node{}
	for _, n := range nodes {
		at[n.Place] = append(at[n.Place], n)
		for _, script := range []*dagfile.Script{n.Pre, n.Post} {
			if script != nil {
				at[script.Place] = append(at[script.Place], n)
			}
		}
	}
	return at
}

func (b *dagBuild) tell(s dagfile.Statement, l Line) {
	l.Text = strings.TrimSpace(s.Command + " " + s.Rest)
	b.say(s.Place, l)
}

// maxJobs takes over a limit: a file that is spliced several times has as many categories of that name. Several files
// may have one of the same name; told has what has been said of each.
func (b *dagBuild) maxJobs(s dagfile.Statement, flow *dagsteps.Flow, works []*work, t *v1alpha1.Throttle,
	told map[string]Line) Line {
	word := strings.Fields(s.Rest)[0]
	worst := Line{Verdict: Moot, Words: "no node of this category runs"}
	var categories []string
	for category := range b.d.Limits {
		if category == word || strings.HasSuffix(category, "+"+word) || strings.HasSuffix(category, "/"+word) {
			categories = append(categories, category)
		}
	}
	slices.Sort(categories)
	for _, category := range categories {
		l, taken := told[category]
		if !taken {
			l = categoryLine(category, b.d.Limits[category], b.d, flow, func(i int) int {
				if works[i] == nil {
					return 1
				}
				return max(1, works[i].jobs/max(1, len(flow.Steps[i].Nodes[0])))
			}, t)
			told[category] = l
		}
		if l.Words == "throttle.together" && slices.ContainsFunc(works, func(w *work) bool {
			return w != nil && w.Job.Parallelism != nil
		}) {
			l.Words += ", and not what max_materialize and max_idle of its nodes say"
		}
		if worse(l.Verdict, worst.Verdict) {
			worst = l
		}
	}
	return worst
}
