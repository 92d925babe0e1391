package schedd

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
)

// Description is everything that htcd sends for one run.
type Description struct {
	Tag        Tag
	BatchName  string
	Queue      int      // number of procs, at least 1
	Options    string   // the HTCJob's htcopts: further submit commands
	Allow      []string // submit commands and +Attributes a site allows beyond allow.go
	JobOptions JobOptions

	Image   string // as ResolveImage returns it
	Command string // words split at white space; no shell interprets them
	Source  string // the script

	// Environment holds variables for the script. They travel in a file that only the job's account can read, because
	// everybody can see an ad's environment.
	Environment map[string]string

	Binds            []string      // directories to bind into the container if the node has them
	CallbackURL      string        // where the job reports its end; empty: nowhere
	CallbackDeadline time.Duration // for all tries together, in whole seconds; 0: 60 s
	Sender           string        // path of an htcd binary to send along; empty: use the node's curl or wget

	MaxOutput int64 // largest output of a job, in MiB; HTCondor holds a job with more. 0: no limit
}

// File names in a sandbox.
const (
	fileSubmit = "job.sub"
	fileJob    = "job.sh"
	fileScript = "script"
	fileToken  = "token"
	fileSender = "htcd-send"

	fileEnvironment = ".environment"
)

// sandboxFiles lists names that a job may not use for output.
var sandboxFiles = []string{fileSubmit, fileJob, fileScript, fileToken, fileSender, fileEnvironment, ".htcd"}

const (
	// keepCompleted is how long a completed job waits in the queue for its output to be fetched: HTCondor's default.
	keepCompleted           = 10 * 24 * time.Hour
	defaultCallbackDeadline = 60 * time.Second
)

// Render returns the text of the submit description, job.sub. It is pure; its errors are of kind Refused.
func (d Description) Render() (string, error) {
	if err := d.check(); err != nil {
		return "", err
	}
	options, err := d.options()
	if err != nil {
		return "", err
	}
	inputs := []string{fileScript, fileToken}
	if len(d.Environment) > 0 {
		inputs = append(inputs, fileEnvironment)
	}
	if d.Sender != "" {
		inputs = append(inputs, fileSender)
	}

	var b strings.Builder
	set := func(key, value string) { b.WriteString(key + " = " + value + "\n") }
	set("universe", "vanilla")
	set("executable", fileJob)
	b.WriteString(procArgument + "\n")
	set("should_transfer_files", "YES")
	set("when_to_transfer_output", "ON_EXIT")
	set("transfer_input_files", strings.Join(inputs, ", "))
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
	for _, o := range d.JobOptions.attributes() {
		b.WriteString(o.String())
	}
	set("My."+attrUID, classad.Quote(d.Tag.UID))
	set("My."+attrAttempt, fmt.Sprint(d.Tag.Attempt))
	set("My."+attrNamespace, classad.Quote(d.Tag.Namespace))
	set("My."+attrName, classad.Quote(d.Tag.Name))
	if d.Tag.SpecHash != "" {
		set("My."+attrSpecHash, classad.Quote(d.Tag.SpecHash))
	}
	fmt.Fprintf(&b, "queue %d\n", d.Queue)
	return b.String(), checkWritten(b.String())
}

// Deferred reports whether an execution of a job may end without ending the job, or succeed with a code other than 0: then
// only HTCondor knows how the job ended, and a callback reports only one execution. A command allowed by the site counts,
// since its effect is unknown here.
func (d Description) Deferred() bool {
	options, err := d.options()
	if err != nil {
		return false
	}
	return len(d.JobOptions.SuccessCodes) > 0 || d.JobOptions.MemoryRetry != nil || slices.ContainsFunc(options, func(o option) bool {
		return !strings.HasPrefix(o.key, "My.") && (allowed[o.key] == nil && !requestCustom.MatchString(o.key) || slices.Contains(deferring, o.key))
	})
}

//go:embed wrapper.sh
var wrapperBody string

// Wrapper returns the text of job.sh, the job's executable: a head of assignments, then wrapper.sh. It is pure; its errors
// are of kind Refused.
func (d Description) Wrapper() (string, error) {
	if err := d.check(); err != nil {
		return "", err
	}
	deadline := d.CallbackDeadline
	if deadline == 0 {
		deadline = defaultCallbackDeadline
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# Runs the script of the HTCJob %s/%s in its container and reports its end to htcd.\n", d.Tag.Namespace, d.Tag.Name)
	b.WriteString("proc=${1:-0}\n")
	set := func(name, value string) { b.WriteString(name + "=" + shellQuote(value) + "\n") }
	set("name", d.Tag.Name)
	set("namespace", d.Tag.Namespace)
	set("image", d.Image)
	set("binds", strings.Join(d.Binds, " "))
	set("url", d.CallbackURL)
	set("deadline", fmt.Sprint(int64(deadline/time.Second)))
	b.WriteString("set --")
	for _, w := range strings.Fields(d.Command) {
		b.WriteString(" " + shellQuote(w))
	}
	b.WriteString("\n" + wrapperBody)
	return b.String(), nil
}

// shellQuote quotes s for any shell; s contains no NUL and no line break.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var (
	uidRE  = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	objRE  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`) // and at most maxName letters: {0,251} in the pattern would take 0.2 MB
	bindRE = regexp.MustCompile(`^/[A-Za-z0-9._/+-]+$`)
	urlRE  = regexp.MustCompile(`^https?://[^\s'"\\]+$`)
)

const maxName = 253

// check refuses what could break a line of the submit description or of the wrapper, or could never run.
func (d Description) check() error {
	// Kubernetes promises the shape of these; the event and the ad rely on it.
	switch {
	case !uidRE.MatchString(d.Tag.UID):
		return refused("UID %q: expected letters, digits and -", d.Tag.UID)
	case d.Tag.Attempt < 1:
		return refused("attempt %d: expected 1 or more", d.Tag.Attempt)
	case len(d.Tag.Namespace) > maxName || !objRE.MatchString(d.Tag.Namespace):
		return refused("namespace %q: expected a Kubernetes name", d.Tag.Namespace)
	case len(d.Tag.Name) > maxName || !objRE.MatchString(d.Tag.Name):
		return refused("name %q: expected a Kubernetes name", d.Tag.Name)
	case d.Queue < 1:
		return refused("queue %d: expected 1 or more", d.Queue)
	}
	if err := oneLine("name", d.BatchName); err != nil {
		return err
	}
	if m := macro.FindString(d.BatchName); m != "" || strings.HasSuffix(d.BatchName, `\`) {
		return refused("name %q: expected neither a macro such as $(X) nor a backslash at the end", d.BatchName)
	}
	if image, err := ResolveImage(d.Image, ""); err != nil {
		return err
	} else if image != d.Image {
		return refused("image %q: expected a scheme or an absolute path", d.Image)
	}
	if len(strings.Fields(d.Command)) == 0 {
		return refused("command %q: expected the program that runs the script, such as bash", d.Command)
	}
	if err := oneLine("command", d.Command); err != nil {
		return err
	}
	if strings.HasPrefix(strings.TrimSpace(d.Command), "-") {
		return refused("command %q: expected a program, not an option", d.Command)
	}
	if err := checkEnvironment(d.Environment); err != nil {
		return err
	}
	if err := d.JobOptions.check(); err != nil {
		return err
	}
	for _, dir := range d.Binds {
		if !bindRE.MatchString(dir) {
			return refused("bind %q: expected an absolute path of letters, digits and . _ / + -", dir)
		}
	}
	if d.CallbackURL != "" && !urlRE.MatchString(d.CallbackURL) {
		return refused("callback URL %q: expected http:// or https://", d.CallbackURL)
	}
	return nil
}

func oneLine(what, s string) error {
	at, found := unplain(s)
	if i := strings.IndexByte(s, '\t'); i >= 0 && (found == "" || i < at) {
		at, found = i, "a tab"
	}
	if found != "" {
		return refused("%s %q: expected one line of plain text, found %s at byte %d", what, s, found, at+1)
	}
	return nil
}
