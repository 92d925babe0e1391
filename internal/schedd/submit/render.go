package submit

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
)

// Sandbox is a run as Stage writes it.
type Sandbox struct {
	Files []File // all but the tokens
	Procs int

	// Factory is Description.Parallelism: what Submit sends is one job, the launcher of the factory that makes the
	// others.
	Factory int

	Nodes    int      // of a job; 0: it has one machine
	Requests Requests // what the jobs ask for in the end, on all nodes together

	// Deferred reports whether an execution of a job may end without ending the job, or succeed with a code other than
	// 0: then only HTCondor knows how the job ended, and a callback reports only one execution.
	Deferred bool

	Steps []SentStep // of a DAG
}

// Sends returns how many jobs condor_submit sends of a run of so many, of which a factory makes some at a time, or
// none.
func Sends(procs, factory int) int {
	if factory > 0 {
		return 1 // the launcher
	}
	return procs
}

// SentStep is what the nodes of one step of a DAG ask for, and whether an execution may end without ending its node.
type SentStep struct {
	Requests Requests
	Deferred bool
}

// File is one file of a sandbox.
type File struct {
	Name    string
	Mode    fs.FileMode
	Content string
	From    string // path of the file to copy instead; empty: Content
	OfProc  bool   // one of as many as there are procs: Stage puts the tokens before Content
	items   func() string
}

// Text returns the content. That of items is built on each call: a factory can have a million of them, too many to hold
// as files at once.
func (f File) Text() string {
	if f.items != nil {
		return f.items()
	}
	return f.Content
}

// keepCompleted is how long a completed job waits in the queue for its output to be fetched: HTCondor's default.
const keepCompleted = 10 * 24 * time.Hour

// Render checks d and returns the sandbox of its run. It is pure; its errors are of kind Refused.
func (d Description) Render() (Sandbox, error) {
	d, image, asked, err := d.prepare()
	if err != nil {
		return Sandbox{}, err
	}
	if _, said := value(asked, "success_exit_code"); said {
		d.JobOptions.SuccessCodes = d.successCodes(asked)
	}
	options, err := d.complete(asked)
	if err != nil {
		return Sandbox{}, err
	}
	if len(d.Items) == 0 {
		if err := d.checkArgsOf("a job without items", ""); err != nil {
			return Sandbox{}, err
		}
	}
	if err := d.checkSecretOutputs(options); err != nil {
		return Sandbox{}, err
	}
	codes := d.successCodes(options)
	if err := d.checkSuccess(codes); err != nil {
		return Sandbox{}, err
	}
	if err := d.checkCheckpoint(codes, options); err != nil {
		return Sandbox{}, err
	}
	if d.Parallelism == 0 {
		options = chargedToOwner(options)
	}
	inputs := d.inputs()
	submit := d.submit(options, inputs)
	if err := checkWritten(submit); err != nil {
		return Sandbox{}, err
	}
	files := append(append(inputs, d.itemFiles()...),
		File{Name: fileScript, Mode: 0o644, Content: d.Source},
		File{Name: fileJob, Mode: 0o755, Content: d.wrapper(image, codes, nil)})
	if d.Parallelism > 0 {
		files = d.manufactured(files, d.queued(submit))
	} else {
		files = append(files, File{Name: FileSubmit, Mode: 0o644, Content: d.queued(submit)})
	}
	return Sandbox{
		Files:    files,
		Procs:    d.Queue,
		Factory:  d.Parallelism,
		Nodes:    d.Nodes,
		Requests: d.requests(asked),
		Deferred: d.deferred(options),
	}, nil
}

// prepare checks d and completes it with the defaults. It returns the image, too, and the lines of what d and the
// defaults ask for.
func (d Description) prepare() (_ Description, image string, asked []option, err error) {
	if image, err = d.usableImage(); err != nil {
		return d, "", nil, err
	}
	if err := d.check(); err != nil {
		return d, "", nil, err
	}
	own, err := d.own()
	if err != nil {
		return d, "", nil, err
	}
	d, asked, err = d.withDefaults(own)
	return d, image, d.nodeMemory(asked), err
}

// inputs returns the files that a job gets beside its executable, the script and the token.
func (d Description) inputs() []File {
	var files []File
	if len(d.Environment) > 0 {
		files = append(files, File{Name: fileEnvironment, Mode: 0o600, Content: environmentFile(d.Environment)})
	}
	files = slices.Concat(files, d.partFiles(), d.credentialFiles(), d.pluginFiles())
	if d.Sender != "" {
		files = append(files, File{Name: fileSender, Mode: 0o755, From: d.Sender})
	}
	return files
}

// submit returns the text of the submit description.
func (d Description) submit(options []option, inputs []File) string {
	var names []string
	if len(d.varying()) == 0 {
		names = append(names, fileScript)
	}
	if len(d.Items) == 0 {
		names = append(names, fileToken)
	}
	for _, f := range inputs {
		names = append(names, f.Name)
	}
	names = append(names, d.sameURLs()...)
	names = append(names, d.inputDirs()...)
	if len(d.Items) > 0 {
		names = append(names, procOwn)
	}
	if len(d.varying()) > 0 {
		names = append(names, procURLs)
	}
	return d.lines(vanilla{
		head:   []option{{"executable", fileJob}, {"arguments", procNumber}},
		files:  strings.Join(names, ", "),
		kept:   []option{{"My.JobBatchName", classad.Quote(d.BatchName)}, noMail, leave},
		asked:  options,
		output: d.outputLines(),
		tag:    tagLines(d.Tag),
		procs:  d.Queue,
	})
}

// vanilla is what distinguishes the submit description of an HTCJob from that of a DAG's node.
type vanilla struct {
	head   []option
	files  string // transfer_input_files
	kept   []option
	asked  []option // of users, the site and HTCPools
	output []option
	tag    []option
	procs  int
}

// lines writes a submit description.
func (d Description) lines(v vanilla) string {
	all := append(d.universe(), v.head...)
	all = append(
		all,
		option{"should_transfer_files", "YES"},
		option{"when_to_transfer_output", d.whenToTransfer()},
		option{"transfer_input_files", v.files},
	)
	if plugins := d.transferPlugins(); plugins != "" {
		all = append(all, option{"transfer_plugins", plugins})
	}
	all = append(all, option{"output", condor.Stdout}, option{"error", condor.Stderr})
	if d.MaxOutput > 0 {
		all = append(all, option{"max_transfer_output_mb", fmt.Sprint(d.MaxOutput)})
	}
	// Of a command that is there twice the last one holds, so htcd's own come after everything a user wrote.
	all = slices.Concat(
		all,
		d.checkpointLines(),
		v.kept,
		v.asked,
		v.output,
		d.JobOptions.attributes(),
		d.closed(),
		v.tag,
	)
	return written(all, v.procs)
}

// written returns the text of a submit description.
func written(lines []option, procs int) string {
	var b strings.Builder
	for _, o := range lines {
		b.WriteString(o.String())
	}
	fmt.Fprintf(&b, "queue %d\n", procs)
	return b.String()
}

var noMail = option{"notification", "never"}

// leave makes a job wait in the queue until its output is safe. Only a completed job stays: a removed one must not come
// back. It leaves when htcd confirms that its output is safe, which a transfer alone does not show.
var leave = option{
	"leave_in_queue",
	fmt.Sprintf("(JobStatus == %d) && (%s =!= true) && ((time() - CompletionDate) < %d)",
		condor.Completed, condor.AttrFetched, int64(keepCompleted/time.Second)),
}

// tagLines returns the tag as submit lines.
func tagLines(t condor.Tag) []option {
	lines := []option{
		{"My." + condor.AttrUID, classad.Quote(t.UID)}, {"My." + condor.AttrAttempt, fmt.Sprint(t.Attempt)},
		{"My." + condor.AttrNamespace, classad.Quote(t.Namespace)}, {"My." + condor.AttrName, classad.Quote(t.Name)},
	}
	if t.SpecHash != "" {
		lines = append(lines, option{"My." + condor.AttrSpecHash, classad.Quote(t.SpecHash)})
	}
	if t.Creator != "" {
		lines = append(lines, option{"My." + condor.AttrCreator, classad.Quote(t.Creator)})
	}
	if t.Pool != "" {
		lines = append(lines, option{"My." + condor.AttrPool, classad.Quote(t.Pool)})
	}
	if t.Nodes != "" {
		lines = append(lines, option{"My." + condor.AttrNodes, classad.Quote(t.Nodes)})
	}
	if t.Repeats != "" {
		lines = append(lines, option{"My." + condor.AttrRepeats, classad.Quote(t.Repeats)})
	}
	return lines
}

// deferred returns Sandbox.Deferred. A command allowed by the site counts, since its effect is unknown here.
func (d Description) deferred(options []option) bool {
	return len(d.JobOptions.SuccessCodes) > 0 || len(d.Outputs) > 0 || d.JobOptions.MemoryRetry != nil ||
		slices.ContainsFunc(options, func(o option) bool {
			return !strings.HasPrefix(o.key, "My.") &&
				(allowed[o.key] == nil && !htcopts.CustomRequest.MatchString(o.key) ||
					slices.Contains(deferring, o.key))
		})
}
