package schedd

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
)

// Sandbox is a run as Stage writes it.
type Sandbox struct {
	Files []File // all but the tokens
	Procs int

	Requests Requests // what the jobs ask for in the end

	// Deferred reports whether an execution of a job may end without ending the job, or succeed with a code other than 0:
	// then only HTCondor knows how the job ended, and a callback reports only one execution.
	Deferred bool

	Steps []SentStep // of a DAG
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
}

// keepCompleted is how long a completed job waits in the queue for its output to be fetched: HTCondor's default.
const keepCompleted = 10 * 24 * time.Hour

// Render checks d and returns the sandbox of its run. It is pure; its errors are of kind Refused.
func (d Description) Render() (Sandbox, error) {
	image, err := resolveImage(d.Image, d.ImageRegistry)
	if err != nil {
		return Sandbox{}, err
	}
	if err := allowImage(image, d.AllowImages, "the administrator of htcd"); err != nil {
		return Sandbox{}, err
	}
	if err := allowImage(image, d.PoolImages, "HTCPool "+d.Tag.Pool); err != nil {
		return Sandbox{}, err
	}
	if err := d.check(); err != nil {
		return Sandbox{}, err
	}
	own, err := d.own()
	if err != nil {
		return Sandbox{}, err
	}
	d, asked, err := d.withDefaults(own)
	if err != nil {
		return Sandbox{}, err
	}
	options, err := d.complete(asked)
	if err != nil {
		return Sandbox{}, err
	}
	if err := d.checkSecretOutputs(options); err != nil {
		return Sandbox{}, err
	}
	codes := d.successCodes(options)
	if err := d.checkSuccess(codes); err != nil {
		return Sandbox{}, err
	}
	inputs := d.inputs()
	submit := d.submit(options, inputs)
	if err := checkWritten(submit); err != nil {
		return Sandbox{}, err
	}
	return Sandbox{
		Files: append(append(inputs, d.itemFiles()...),
			File{Name: fileScript, Mode: 0o644, Content: d.Source},
			File{Name: fileJob, Mode: 0o755, Content: d.wrapper(image, codes)},
			File{Name: fileSubmit, Mode: 0o644, Content: submit}),
		Procs:    d.Queue,
		Requests: d.requests(asked),
		Deferred: d.deferred(options),
	}, nil
}

// inputs returns the files that a job gets beside its executable, the script and the token.
func (d Description) inputs() []File {
	var files []File
	if len(d.Environment) > 0 {
		files = append(files, File{Name: fileEnvironment, Mode: 0o600, Content: environmentFile(d.Environment)})
	}
	files = append(append(files, d.credentialFiles()...), d.pluginFiles()...)
	if d.Sender != "" {
		files = append(files, File{Name: fileSender, Mode: 0o755, From: d.Sender})
	}
	return files
}

// submit returns the text of the submit description.
func (d Description) submit(options []option, inputs []File) string {
	names := []string{fileScript}
	if len(d.Items) == 0 {
		names = append(names, fileToken)
	}
	for _, f := range inputs {
		names = append(names, f.Name)
	}
	names = append(names, d.inputURLs()...)
	names = append(names, d.inputDirs()...)
	if len(d.Items) > 0 {
		names = append(names, procOwn)
	}

	var b strings.Builder
	set := func(key, value string) { b.WriteString(key + " = " + value + "\n") }
	set("universe", "vanilla")
	set("executable", fileJob)
	b.WriteString(procArgument + "\n")
	set("should_transfer_files", "YES")
	set("when_to_transfer_output", "ON_EXIT")
	set("transfer_input_files", strings.Join(names, ", "))
	if plugins := d.transferPlugins(); plugins != "" {
		set("transfer_plugins", plugins)
	}
	set("output", Stdout)
	set("error", Stderr)
	if d.MaxOutput > 0 {
		set("max_transfer_output_mb", fmt.Sprint(d.MaxOutput))
	}
	set("My.JobBatchName", classad.Quote(d.BatchName))
	set("notification", "never")
	// Only a completed job stays: a removed one must not come back. It leaves when htcd confirms that its output is safe, which
	// a transfer alone does not show.
	set("leave_in_queue", fmt.Sprintf("(JobStatus == %d) && (%s =!= true) && ((time() - CompletionDate) < %d)",
		Completed, attrFetched, int64(keepCompleted/time.Second)))
	for _, o := range options {
		b.WriteString(o.String())
	}
	// The last one wins, so these come after everything a user wrote.
	for _, o := range append(d.outputLines(), d.JobOptions.attributes()...) {
		b.WriteString(o.String())
	}
	set("My."+attrUID, classad.Quote(d.Tag.UID))
	set("My."+attrAttempt, fmt.Sprint(d.Tag.Attempt))
	set("My."+attrNamespace, classad.Quote(d.Tag.Namespace))
	set("My."+attrName, classad.Quote(d.Tag.Name))
	if d.Tag.SpecHash != "" {
		set("My."+attrSpecHash, classad.Quote(d.Tag.SpecHash))
	}
	if d.Tag.Pool != "" {
		set("My."+attrPool, classad.Quote(d.Tag.Pool))
	}
	fmt.Fprintf(&b, "queue %d\n", d.Queue)
	return b.String()
}

// deferred returns Sandbox.Deferred. A command allowed by the site counts, since its effect is unknown here.
func (d Description) deferred(options []option) bool {
	return len(d.JobOptions.SuccessCodes) > 0 || len(d.Outputs) > 0 || d.JobOptions.MemoryRetry != nil || slices.ContainsFunc(options, func(o option) bool {
		return !strings.HasPrefix(o.key, "My.") && (allowed[o.key] == nil && !requestCustom.MatchString(o.key) || slices.Contains(deferring, o.key))
	})
}
