package submit

import (
	"path"
	"regexp"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Description is everything that htcd sends for one run.
type Description struct {
	Tag       condor.Tag
	BatchName string
	Queue     int   // number of procs, at least 1
	Numbers   []int // of the procs, one for each; none: from 0

	// Parallelism is how many of the jobs are there at a time: a factory makes them, see Factory. 0: all, in one
	// cluster.
	Parallelism int

	// Nodes is on how many machines a job runs at once; 0: on one, by itself.
	Nodes int

	Options    string   // the HTCJob's htcopts: further submit commands
	Allow      []string // submit commands and +Attributes a site allows beyond allow.go
	Attributes []string // patterns of further +Attributes that it allows
	JobOptions JobOptions
	Placement  Placement
	Defaults   Defaults

	Image         string   // as the HTCJob has it
	ImageRegistry string   // put before an image that names no registry; empty: nothing is
	AllowImages   []string // patterns of allowImage; none: every image
	PoolImages    []string // further patterns that an image must match, too; none: every image
	Command       string   // words split at white space; no shell interprets them
	Source        string   // the script
	Executable    string   // instead of both: a file in the script's directory, or with / first one of the image
	// of the script, none: the job's number alone; or of the executable. {{item.NAME}}, {{proc}} and {{cluster}} are
	// replaced
	Args   []string
	Before *Part // runs before the script, which runs only if it succeeds; nil: nothing
	After  *Part // runs when the script has ended by itself, and its return code is the job's; nil: nothing

	Workdir      string // a directory of the container in which the script starts; empty: its own
	WritableRoot bool   // the script may change files of the image, for itself

	// Environment holds variables for the script. They travel in a file that only the job's account can read, because
	// everybody can see an ad's environment.
	Environment map[string]string

	// Traceparent is the variable TRACEPARENT, unless Environment or Items set it; empty: it is not set.
	Traceparent string

	// Items holds further variables, as lines NAME=value: one text for each proc, which overrides Environment and which
	// no other proc gets. Empty: there are none.
	Items []string

	Inputs       []Input  // files in the directories of the run that InputsDir describes, or at URLs
	AllowSchemes []string // of URLs; none: no URLs
	Outputs      []Output // empty: HTCondor brings back the files that the job has left in the script's directory

	// Credentials are files that the job gets outside of what is brought back. It pulls newer ones from PullURL, an
	// https URL, with the second of the tokens that Stage is given; empty: it keeps those that it was sent with.
	Credentials []Credential
	PullURL     string

	Binds       []string // directories to bind into the container if the node has them
	CallbackURL string   // where the job reports its end; empty: nowhere
	// PEM text of the authorities that the receiver's certificate is checked with; empty: the node's
	CallbackCA       string
	CallbackAlso     bool          // the node's authorities are as good as those of CallbackCA
	CallbackDeadline time.Duration // for all tries together, in whole seconds; 0: 60 s
	CallbackStart    bool          // it reports its start there, too, once
	Sender           string        // path of an htcd binary to send along; empty: use the node's curl or wget

	Interactive   int64 // seconds for which the container waits for people instead of running the script; 0: it runs it
	KeepOnFailure int64 // seconds for which the container stays when the script has failed

	Checkpoint *Checkpoint // nil: the job keeps none

	MaxOutput int64 // largest output of a job, in MiB; HTCondor holds a job with more. 0: no limit
}

// SubmitFile is the name of the submit description in a sandbox.
const SubmitFile = "job.sub"

// File names in a sandbox.
const (
	FileSubmit = SubmitFile
	fileJob    = "job.sh"
	fileScript = "script"
	fileToken  = "token"
	fileSender = "htcd-send"

	fileEnvironment = ".environment"
)

// sandboxFiles lists names that a job may not use for output.
var sandboxFiles = []string{FileSubmit, fileJob, fileScript, fileToken, fileSender, fileEnvironment, ".htcd"}

var (
	uidRE = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	ObjRE = regexp.MustCompile(
		`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`,
	) // and at most maxName letters: {0,251} in the pattern would take 0.2 MB
	bindRE = regexp.MustCompile(`^/[A-Za-z0-9._/+-]+$`)
	pemRE  = regexp.MustCompile(`^[A-Za-z0-9+/= \n-]*$`)
	urlRE  = regexp.MustCompile(`^https?://[^\s'"\\]+$`)
)

const (
	maxName = 253
	MaxPool = 63
)

// check refuses what could break a line of the submit description or of the wrapper, or could never run.
func (d Description) check() error {
	// Kubernetes promises the shape of these; the event and the ad rely on it.
	switch {
	case !uidRE.MatchString(d.Tag.UID):
		return condor.Refusal("UID %q: expected letters, digits and -", d.Tag.UID)
	case d.Tag.Attempt < 1:
		return condor.Refusal("attempt %d: expected 1 or more", d.Tag.Attempt)
	case len(d.Tag.Namespace) > maxName || !ObjRE.MatchString(d.Tag.Namespace):
		return condor.Refusal("namespace %q: expected a Kubernetes name", d.Tag.Namespace)
	case len(d.Tag.Name) > maxName || !ObjRE.MatchString(d.Tag.Name):
		return condor.Refusal("name %q: expected a Kubernetes name", d.Tag.Name)
	case d.Tag.Pool != "" && (len(d.Tag.Pool) > MaxPool || !ObjRE.MatchString(d.Tag.Pool)):
		return condor.Refusal("pool %q: expected the name of an HTCPool", d.Tag.Pool)
	case d.Parallelism < 0:
		return condor.Refusal("spec.parallelism: expected 1 or more, found %d", d.Parallelism)
	case d.Queue < 1:
		return condor.Refusal("queue %d: expected 1 or more", d.Queue)
	}
	if err := d.checkNodes(); err != nil {
		return err
	}
	if err := oneLine("name", d.BatchName); err != nil {
		return err
	}
	if m := macro.FindString(d.BatchName); m != "" || strings.HasSuffix(d.BatchName, `\`) {
		return condor.Refusal("name %q: expected neither a macro such as $(X) nor a backslash at the end", d.BatchName)
	}
	if err := d.checkProgram(); err != nil {
		return err
	}
	if err := d.checkParts(); err != nil {
		return err
	}
	if w := d.Workdir; w != "" && (!pathRE.MatchString(w) || path.Clean(w) != strings.TrimSuffix(w, "/")) {
		return condor.Refusal(
			"workdir %q: expected a clean path of letters, digits and . _ / : @ + = ~ -, such as /opt/model",
			w,
		)
	}
	if err := checkEnvironment(d.Environment); err != nil {
		return err
	}
	if err := d.checkArgs(); err != nil {
		return err
	}
	if err := d.checkNumbers(); err != nil {
		return err
	}
	if err := d.checkItems(); err != nil {
		return err
	}
	if err := d.checkInputs(); err != nil {
		return err
	}
	if err := d.checkOutputs(); err != nil {
		return err
	}
	if err := d.checkCredentials(); err != nil {
		return err
	}
	if err := d.JobOptions.check(); err != nil {
		return err
	}
	for _, dir := range d.Binds {
		if !bindRE.MatchString(dir) {
			return condor.Refusal("bind %q: expected an absolute path of letters, digits and . _ / + -", dir)
		}
	}
	if d.CallbackURL != "" && !urlRE.MatchString(d.CallbackURL) {
		return condor.Refusal("callback URL %q: expected http:// or https://", d.CallbackURL)
	}
	if !pemRE.MatchString(d.CallbackCA) {
		return condor.Refusal("callback CA: expected certificates in PEM form")
	}
	return nil
}

// checkCommand refuses what runs no script.
func checkCommand(what, command string) error {
	if len(strings.Fields(command)) == 0 {
		return condor.Refusal("%s %q: expected the program that runs the script, such as bash", what, command)
	}
	if err := oneLine(what, command); err != nil {
		return err
	}
	if strings.HasPrefix(strings.TrimSpace(command), "-") {
		return condor.Refusal("%s %q: expected a program, not an option", what, command)
	}
	return nil
}

func oneLine(what, s string) error {
	at, found := unplain(s)
	if i := strings.IndexByte(s, '\t'); i >= 0 && (found == "" || i < at) {
		at, found = i, "a tab"
	}
	if found != "" {
		return condor.Refusal("%s %q: expected one line of plain text, found %s at byte %d", what, s, found, at+1)
	}
	return nil
}
