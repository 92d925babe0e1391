package submit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Names in the spool directory of a DAG, beside those of an HTCJob. The archive has flow.dag, and for the step 0
// s0.sub, its wrapper s0.sh and s0/ with what its nodes get, and for the node 0 its initialdir n/0 with .own-0.
const (
	fileStarter = "dagman.sh"
	fileArchive = "nodes.tgz"
	fileFlow    = "flow.dag"

	filePullToken = ".pull-token" // #nosec G101 -- the name of a file
	DirNodes      = "n"
	dirPulled     = ".htcd-pull"
)

// Macros that each node has a value for in flow.dag, and the lines with them.
const (
	nodeNumber = "$(n)"
	nodeFiles  = "$(files)"
	nodeJobID  = "$(jobid)" // in URLs of outputs, as the next
	nodeIndex  = "$(index)"
)

var removesNodes = option{"My.OtherJobRemoveRequirements", classad.Quote("DAGManJobId =?= $(cluster)")}

var (
	nodeHeads  = []option{{"arguments", nodeNumber}, {"initialdir", DirNodes + "/" + nodeNumber}}
	nodeTagged = option{"My." + condor.AttrNode, nodeNumber}
	// dagLines are the only lines with macros, beside transfer_input_files.
	dagLines = macroLines(append(nodeHeads, nodeTagged, removesNodes)...)
)

func macroLines(options ...option) []string {
	var lines []string
	for _, o := range options {
		lines = append(lines, strings.TrimSuffix(o.String(), "\n"))
	}
	return lines
}

// leaveDAG is as leave, and what the nodes of a DAG have left can still be fetched when it was removed. One whose files
// never arrived has none.
var leaveDAG = option{
	"leave_in_queue",
	fmt.Sprintf(
		"(JobStatus == %d || JobStatus == %d && StageInFinish =!= undefined) && (%s =!= true) && ((time() - EnteredCurrentStatus) < %d)",
		condor.Completed,
		condor.Removed,
		condor.AttrFetched,
		int64(keepCompleted/time.Second),
	),
}

// heldIfUnable are the lines for that. The reason is for those who ask HTCondor.
func heldIfUnable(last int) []option {
	codes := slices.DeleteFunc(slices.Sorted(maps.Keys(condor.WhyUnable)), func(code int) bool { return code > last })
	reason := "undefined"
	for _, code := range codes {
		reason = fmt.Sprintf("ExitCode =?= %d ? %s : %s", code, classad.Quote(condor.WhyUnable[code]), reason)
	}
	return []option{
		{
			"on_exit_hold",
			fmt.Sprintf("ExitCode =!= undefined && ExitCode >= %d && ExitCode <= %d", codes[0], codes[len(codes)-1]),
		},
		{"on_exit_hold_reason", reason}, {"on_exit_hold_subcode", "ExitCode"},
	}
}

// Render checks g and returns its sandbox: that of one job. Sandbox.Steps tells about the nodes. It is pure; its errors
// are of kind Refused.
func (g DAG) Render() (Sandbox, error) {
	if err := g.check(); err != nil {
		return Sandbox{}, err
	}
	handed := g.handed()
	g.Steps = slices.Clone(g.Steps)
	s := Sandbox{Procs: 1}
	var files []File // of the archive
	sender := ""
	for k, step := range g.Steps {
		step.Tag, step.BatchName, step.Queue = g.Tag, g.BatchName, 1
		r, err := step.render(k, handed[k])
		if err != nil {
			return Sandbox{}, condor.Refusal("step %s: %w", step.Name, err)
		}
		files = append(files, r.files...)
		s.Steps = append(s.Steps, r.sent)
		s.Deferred = s.Deferred || r.sent.Deferred
		g.Steps[k] = r.step
		if step.Sender != "" {
			sender = step.Sender
		}
	}
	if err := g.checkVariables(); err != nil {
		return Sandbox{}, err
	}
	starter, hidden := File{Name: fileStarter, Mode: 0o755}, []bool(nil)
	if g.independent() {
		s.Factory = len(g.Nodes)
		starter.Name, starter.Content = fileLauncher, g.launcher()
		files = append(files, g.factory(files[0].Content)...)
	} else {
		if hidden = g.hidden(); hidden != nil {
			files = append(files, File{Name: fileGate, Mode: 0o700, Content: gateBody})
		}
		starter.Content = g.starter()
		files = append(files, File{Name: fileFlow + ".new", Mode: 0o600, Content: g.flow(handed, hidden)})
	}
	archive, err := g.archive(files, handed, hidden)
	if err != nil {
		return Sandbox{}, err
	}
	submit := g.submit(starter.Name, sender != "")
	if err := checkWritten(submit); err != nil {
		return Sandbox{}, err
	}
	s.Files = []File{
		{Name: fileArchive, Mode: 0o600, Content: archive},
		starter,
		{Name: FileSubmit, Mode: 0o644, Content: submit},
	}
	if sender != "" {
		s.Files = append(s.Files, File{Name: fileSender, Mode: 0o755, From: sender})
	}
	return s, nil
}

// submit returns the submit description of DAGMan's job, or of the launcher of a factory, given its executable.
func (g DAG) submit(starter string, sender bool) string {
	unable, mark := 122, []option(nil)
	if starter == fileLauncher {
		unable, mark = 124, []option{{"My." + condor.AttrLauncher, "true"}}
	}
	files := []string{fileArchive, fileToken}
	if sender {
		files = append(files, fileSender)
	}
	if slices.ContainsFunc(g.Nodes, func(n DAGNode) bool { return len(n.Inputs) > 0 }) {
		files = append(files, InputsDir)
	}
	return written(slices.Concat([]option{
		{"universe", "scheduler"}, {"executable", starter}, {"transfer_input_files", strings.Join(files, ", ")},
		{"transfer_output_files", DirNodes}, {"output", condor.Stdout}, {"error", condor.Stderr},
		{"My.JobBatchName", classad.Quote(g.BatchName)}, noMail, leaveDAG,
		// As condor_submit_dag has it: DAGMan writes down what was left before it leaves, and takes its nodes along;
		// the schedd starts it again after an end that is none.
		removeSignal, removesNodes,
		{"on_exit_remove", "ExitSignal =?= 11 || (ExitCode =!= undefined && ExitCode >= 0 && ExitCode <= 2)"},
		// A newer schedd would let DAGMan wait for five minutes after each hold or kill.
		{"My.DisableCoolDown", "true"},
	}, heldIfUnable(unable), mark, tagLines(g.Tag)), 1)
}

// starter returns the text of dagman.sh, the executable of DAGMan's job.
func (g DAG) starter() string {
	return fmt.Sprintf("#!/bin/sh\n# Runs the HTCWorkflow %s/%s.\nmax_idle=%d\nmax_jobs=%d\nsubmits=%d\nseconds=%d\n%s",
		g.Tag.Namespace, g.Tag.Name, g.MaxIdle, g.MaxJobs, g.Pace.Nodes, max(g.Pace.Seconds, 1), starterBody)
}

// flow returns the text of flow.dag. It has numbers, and nothing of a user's.
func (g DAG) flow(handed [][]handedOn, hidden []bool) string {
	var b strings.Builder
	// Going depth first, DAGMan begins with the last of those that are ready.
	for n, node := range slices.Backward(g.Nodes) {
		step := g.Steps[node.Step]
		done := ""
		if node.Done {
			done = " DONE"
		}
		fmt.Fprintf(
			&b,
			"JOB N%d %s%s\nVARS N%d n=\"%d\" files=\"%s\"",
			n,
			stepFile(node.Step, ".sub"),
			done,
			n,
			n,
			strings.Join(g.files(n, handed), ", "),
		)
		if len(step.outputURLs()) > 0 {
			fmt.Fprintf(&b, " jobid=\"%s\" index=\"%d\"", node.jobID(), node.Index)
		}
		b.WriteString("\n")
		if p := cmp.Or(node.Priority, step.JobOptions.Priority); p != nil && *p != 0 {
			fmt.Fprintf(&b, "PRIORITY N%d %d\n", n, *p)
		}
		if step.MaxJobs > 0 {
			fmt.Fprintf(&b, "CATEGORY N%d %s\n", n, step.category(node.Step))
		}
	}
	for n := 0; n < len(g.Nodes); {
		// Many nodes may have the same parents, and many parents.
		next := n + 1
		for next < len(g.Nodes) && slices.Equal(g.Nodes[n].Parents, g.Nodes[next].Parents) &&
			slices.Equal(g.Nodes[n].Ended, g.Nodes[next].Ended) {
			next++
		}
		if before := slices.Concat(g.Nodes[n].Parents, g.Nodes[n].Ended); len(before) > 0 {
			b.WriteString("PARENT")
			for _, p := range before {
				b.WriteString(" N" + strconv.Itoa(p))
			}
			b.WriteString(" CHILD")
			for child := n; child < next; child++ {
				b.WriteString(" N" + strconv.Itoa(child))
			}
			b.WriteString("\n")
		}
		n = next
	}
	g.gates(&b, hidden)
	said := map[string]bool{}
	for k, step := range g.Steps {
		if category := step.category(k); step.MaxJobs > 0 && !said[category] {
			said[category] = true
			fmt.Fprintf(&b, "MAXJOBS %s %d\n", category, step.MaxJobs)
		}
	}
	return b.String()
}

// jobID is what {jobid} in a URL stands for.
func (n DAGNode) jobID() string {
	id, _, _ := strings.Cut(cmp.Or(n.Place, "-"), "/")
	return id
}

// category is what DAGMan calls the steps that share a limit.
func (s DAGStep) category(k int) string {
	if s.Category != "" {
		return s.Category
	}
	return stepFile(k, "")
}

// files lists what one node gets that others of its step do not. With a slash at the end HTCondor transfers the
// contents.
func (g DAG) files(n int, handed [][]handedOn) []string {
	node := g.Nodes[n]
	files := []string{fmt.Sprint(fileOwn, n)}
	for i, from := range node.Pulls {
		pull := g.Steps[node.Step].Pulls[i]
		k := slices.Index(handed[pull.From], handedOn{pull.Path, pull.Several})
		for _, m := range from {
			files = append(files, fmt.Sprintf("../%d/%s/%d/", m, dirPulled, k))
		}
	}
	for _, dir := range node.Inputs {
		files = append(files, "../../"+InputsDir+"/"+dir+"/")
	}
	return files
}

func stepFile(k int, suffix string) string { return "s" + strconv.Itoa(k) + suffix }
