package submit

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// handedOn is what the nodes of a step leave at the schedd for later nodes.
type handedOn struct {
	path    string
	several bool
}

// handed lists for each step what is pulled from it, each once.
func (g DAG) handed() [][]handedOn {
	all := make([][]handedOn, len(g.Steps))
	for _, step := range g.Steps {
		for _, pull := range step.Pulls {
			if h := (handedOn{pull.Path, pull.Several}); !slices.Contains(all[pull.From], h) {
				all[pull.From] = append(all[pull.From], h)
			}
		}
	}
	return all
}

// nodeHead is what the wrapper of a node has in its head beside that of an HTCJob's job.
type nodeHead struct {
	rest    string // 1: all files that the script has left are brought back, as no outputs are named
	handed  []string
	several string // numbers of those that lie at the node's place: " 0 2 "
	always  string // 1: every end is a success
	timed   string // 1: how long the script runs is a result
	codes   []int  // that mean something, other than success
}

// noImage is the signal with which a job ends that has no image, unless the code that the tool returns then is asked
// for.
func (n *nodeHead) noImage() string {
	if n != nil && slices.Contains(n.codes, 255) {
		return ""
	}
	return strconv.Itoa(int(condor.NoImageSignal))
}

// renderedStep is what Render makes of a step.
type renderedStep struct {
	step  DAGStep // with the defaults
	files []File  // of the archive
	sent  SentStep
}

// render checks a step, completes it with the defaults, and returns its files.
func (s DAGStep) render(k int, handed []handedOn) (renderedStep, error) {
	if err := s.checkStep(); err != nil {
		return renderedStep{}, err
	}
	named := len(s.Outputs)
	brought := slices.Clone(s.Outputs)
	for _, path := range s.Keeps {
		for i, o := range brought {
			brought[i].Both = o.Both || o.URL != "" && o.under(path)
		}
		brought = appendNew(brought, path)
	}
	outputs := slices.Clone(brought) // and what is pulled, in the order of the wrapper
	s.Outputs = slices.Clone(brought)
	head := nodeHead{several: " ", codes: slices.Concat(s.RetryExitCodes, s.AbortExitCodes)}
	if named == 0 {
		head.rest = "1"
	}
	if s.AlwaysSucceeds {
		head.always = "1"
	}
	if s.Timed {
		head.timed = "1"
	}
	for i, h := range handed {
		head.handed = append(head.handed, h.path)
		outputs = append(outputs, Output{Path: h.path})
		s.Outputs = appendNew(s.Outputs, h.path)
		if h.several {
			head.several += fmt.Sprint(i, " ")
		}
	}
	if len(outputs) > condor.MaxOutputs {
		return renderedStep{}, condor.Refusal(
			"expected at most %d outputs, together with what other steps pull from it, found %d: name directories, or patterns such as result/*.root",
			condor.MaxOutputs,
			len(outputs),
		)
	}
	d, image, asked, err := s.prepare()
	if err != nil {
		return renderedStep{}, err
	}
	if err := refuseOutputLines(asked); err != nil {
		return renderedStep{}, err
	}
	codes := d.successCodes(asked)
	if err := d.checkSuccess(codes); err != nil {
		return renderedStep{}, err
	}
	if err := d.checkCheckpoint(codes, asked); err != nil {
		return renderedStep{}, err
	}
	// The wrapper ends with 0 for each of these codes.
	d.JobOptions.SuccessCodes = nil
	options, err := s.retryOnly(slices.Clone(asked))
	if err != nil {
		return renderedStep{}, err
	}
	if _, said := value(options, "success_exit_code"); said {
		if options, err = (JobOptions{SuccessCodes: []int{0}}).success(options); err != nil {
			return renderedStep{}, err
		}
	}
	if options, err = d.complete(options); err != nil {
		return renderedStep{}, err
	}
	text := d.nodeSubmit(k, options, outputs, len(handed) > 0)
	if err := checkWritten(text); err != nil {
		return renderedStep{}, err
	}
	d.Outputs = nil // which do not matter here: the wrapper ends with another code if one is missing
	deferred := d.deferred(options)
	d.Outputs = brought
	files := []File{
		{Name: stepFile(k, ".sub"), Mode: 0o600, Content: text},
		{Name: stepFile(k, ".sh"), Mode: 0o700, Content: d.wrapper(image, codes, &head)},
		{Name: stepFile(k, "/") + fileScript, Mode: 0o600, Content: d.Source},
	}
	own := d.inputs()
	if s.PullToken != "" {
		own = append(own, File{Name: filePullToken, Mode: 0o600, Content: s.PullToken + "\n"})
	}
	for _, f := range own {
		if f.From == "" { // the sender is there once for all steps
			f.Name = stepFile(k, "/") + f.Name
			files = append(files, f)
		}
	}
	s.Description = d
	if text, said := value(options, "priority"); said {
		if n, err := strconv.Atoi(text); err == nil {
			s.JobOptions.Priority = &n
		}
	}
	return renderedStep{step: s, files: files, sent: SentStep{Requests: d.requests(asked), Deferred: deferred}}, nil
}

func appendNew(outputs []Output, path string) []Output {
	if slices.ContainsFunc(outputs, func(o Output) bool { return o.Path == path }) {
		return outputs
	}
	return append(outputs, Output{Path: path})
}

// under reports whether an output that has no pattern is, or lies in, what another path stands for.
func (o Output) under(pattern string) bool {
	for at := o.Path; at != "."; at = path.Dir(at) {
		if is, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), at); err == nil && is {
			return true
		}
	}
	return false
}

// nodeSubmit returns the submit description of a step's nodes.
func (d Description) nodeSubmit(k int, options []option, outputs []Output, handsOn bool) string {
	names := []string{"../../" + fileToken, "../../" + stepFile(k, "/")}
	if d.Sender != "" {
		names = append(names, "../../"+fileSender)
	}
	names = append(names, d.sameURLs()...)
	brought := []option{{"transfer_output_files", dirOutputs}}
	if handsOn {
		brought[0].value += ", " + dirPulled
	}
	if len(outputs) > 0 {
		brought = append(brought, option{"My." + condor.AttrOutputs, quotedPaths(outputs)})
	}
	if remaps := d.outputRemaps(nodeIndex); remaps != "" {
		brought = append(brought, option{outputRemaps, `"` + remaps + `"`})
	}
	return d.lines(vanilla{
		head:   append([]option{{"executable", stepFile(k, ".sh")}}, nodeHeads...),
		files:  strings.Join(append(names, nodeFiles), ", "),
		kept:   []option{noMail},
		asked:  options,
		output: brought,
		tag:    nodeTagLines(d.Tag),
		procs:  1,
	})
}

// nodeTagLines returns the tag of a node as submit lines.
func nodeTagLines(t condor.Tag) []option {
	lines := []option{
		{
			"My." + condor.AttrWorkflow,
			classad.Quote(t.UID),
		},
		{"My." + condor.AttrDAG, strconv.Itoa(t.Attempt)},
		nodeTagged,
		{"My." + condor.AttrNamespace, classad.Quote(t.Namespace)},
		{"My." + condor.AttrName, classad.Quote(t.Name)},
	}
	if t.Creator != "" {
		lines = append(lines, option{"My." + condor.AttrCreator, classad.Quote(t.Creator)})
	}
	if t.Pool != "" {
		lines = append(lines, option{"My." + condor.AttrPool, classad.Quote(t.Pool)})
	}
	return lines
}

// retryOnly restricts retries to some codes. A job that ended by a signal is not one of them.
func (s DAGStep) retryOnly(options []option) ([]option, error) {
	_, until := value(options, "retry_until")
	_, retried := value(options, "max_retries")
	switch {
	case len(s.RetryExitCodes) == 0 && len(s.AbortExitCodes) > 0 && (retried || until):
		return orUntil(options, "ExitBySignal =?= false && member(ExitCode, {"+numbers(s.AbortExitCodes)+"})")
	case len(s.RetryExitCodes) == 0:
		return options, nil
	case until:
		return nil, condor.Refusal("retry_until in htcopts and retryExitCodes do not say the same: write it once")
	case !retried:
		return nil, condor.Refusal("retryExitCodes: expected retries beside them")
	}
	again := slices.DeleteFunc(
		slices.Clone(s.RetryExitCodes),
		func(code int) bool { return slices.Contains(s.AbortExitCodes, code) },
	)
	return append(
		options,
		option{"retry_until", "ExitBySignal =!= false || !member(ExitCode, {" + numbers(again) + "})"},
	), nil
}

// numbers lists them with commas.
func numbers(codes []int) string {
	words := make([]string, len(codes))
	for i, code := range codes {
		words[i] = strconv.Itoa(code)
	}
	return strings.Join(words, ",")
}

// refuseOutputLines: a node brings back one directory, whatever its outputs.
func refuseOutputLines(options []option) error {
	for _, key := range []string{"transfer_output_files", outputRemaps} {
		if _, said := value(options, key); said {
			return condor.Refusal("%s cannot be used in a workflow: name the files in outputs", key)
		}
	}
	return nil
}

// checkStep refuses what nodes do not have yet.
func (s DAGStep) checkStep() error {
	switch {
	case len(s.Items) > 0 || slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.OfProc }):
		return condor.Refusal("items, and inputs of single jobs, cannot be used in a workflow")
	case s.MaxJobs < 0:
		return condor.Refusal("a throttle of %d: expected 0 or more", s.MaxJobs)
	}
	for _, code := range s.RetryExitCodes {
		if code < 1 || code > 255 {
			return condor.Refusal("retryExitCodes: expected return codes from 1 to 255, found %d", code)
		}
		if s.Checkpoint != nil && code == s.Checkpoint.ExitCode {
			return condor.Refusal(
				"retryExitCodes: %d is spec.checkpoint.exitCode, after which a job goes on anyway: leave it out",
				code,
			)
		}
	}
	return nil
}

const (
	maxPulled = 1000 // nodes that one node pulls from: they are named in its ad
	maxPlace  = 128
)

var (
	placeRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[0-9]+)?$`)
	dirRE   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
)

// check refuses a graph that cannot be written. That it has no cycles is for the caller to see to.
func (g DAG) check() error {
	switch {
	case len(g.Nodes) == 0:
		return condor.Refusal("a workflow without jobs")
	case g.MaxIdle < 0 || g.MaxJobs < 0:
		return condor.Refusal("throttles of %d idle and %d jobs: expected 0 or more", g.MaxIdle, g.MaxJobs)
	}
	for _, step := range g.Steps {
		for _, pull := range step.Pulls {
			if pull.From < 0 || pull.From >= len(g.Steps) {
				return condor.Refusal("step %s pulls from a step that is not in this DAG", step.Name)
			}
		}
	}
	for n, node := range g.Nodes {
		if err := g.checkNode(n, node); err != nil {
			return err
		}
	}
	return nil
}

func (g DAG) checkNode(n int, node DAGNode) error {
	isNode := func(m int) bool { return m >= 0 && m < len(g.Nodes) && m != n }
	switch {
	case node.Step < 0 || node.Step >= len(g.Steps):
		return condor.Refusal("node %d: there is no step %d", n, node.Step)
	case node.Place != "" && (len(node.Place) > maxPlace || !placeRE.MatchString(node.Place) || Taken(node.Place)):
		return condor.Refusal(
			"node %d: the identifier %q: expected at most %d letters, digits and _ . -, and no name that htcd or HTCondor uses",
			n,
			condor.Clip(node.Place),
			maxPlace,
		)
	case slices.ContainsFunc(slices.Concat(node.Parents, node.Ended), func(m int) bool { return !isNode(m) }):
		return condor.Refusal("node %d: one of its parents is not in this DAG", n)
	case node.Index < 0 || len(node.Pulls) != len(g.Steps[node.Step].Pulls):
		return condor.Refusal(
			"node %d: %d pulls of a step that has %d",
			n,
			len(node.Pulls),
			len(g.Steps[node.Step].Pulls),
		)
	}
	pulled := 0
	for i, from := range node.Pulls {
		pull := g.Steps[node.Step].Pulls[i]
		for _, m := range from {
			if !isNode(m) || g.Nodes[m].Step != pull.From || pull.Several && g.Nodes[m].Place == "" {
				return condor.Refusal("node %d: node %d is not one that it can pull from", n, m)
			}
		}
		if len(from) > 1 && !pull.Several {
			return condor.Refusal("node %d: %d files of one name", n, len(from))
		}
		pulled += len(from)
	}
	if pulled > maxPulled {
		return condor.Refusal(
			"step %s: a job pulls from %d others, expected at most %d: let a step between them join some",
			g.Steps[node.Step].Name,
			pulled,
			maxPulled,
		)
	}
	for _, dir := range node.Inputs {
		if !dirRE.MatchString(dir) {
			return condor.Refusal(
				"node %d: the directory %q: expected lower case letters, digits and -",
				n,
				condor.Clip(dir),
			)
		}
	}
	return nil
}

// checkVariables refuses variables that do not fit the steps' own.
func (g DAG) checkVariables() error {
	common := make([]int, len(g.Steps))
	for k, step := range g.Steps {
		common[k] = len(environmentFile(step.Environment))
	}
	for n, node := range g.Nodes {
		if err := checkLines(fmt.Sprint("node ", n), node.Variables, common[node.Step]); err != nil {
			return err
		}
		if err := g.Steps[node.Step].checkArgsOf(fmt.Sprint("node ", n), node.Variables); err != nil {
			return err
		}
	}
	return nil
}
