package schedd

import "time"

// Description is everything htcd sends for one run.
type Description struct {
	Tag       Tag
	BatchName string
	Queue     int      // procs, at least 1
	Options   string   // the htcopts of the HTCJob: more submit commands
	Allow     []string // submit commands and +Attributes a site allows beyond the table in allow.go

	Image   string // as ResolveImage returns it
	Command string // words split at white space; no shell looks at them
	Source  string // the script

	Binds            []string      // directories bound into the container where the node has them
	CallbackURL      string        // where the job posts its end; empty: it does not
	CallbackDeadline time.Duration // for all tries together; 0: 60 s
	Sender           string        // path of an htcd binary to send along; empty: the node's curl or wget

	// KeepCompleted bounds how long a completed job waits in the queue for
	// its output to be fetched; 0: 10 days, HTCondor's own default.
	KeepCompleted time.Duration
}

// Render gives the text of the submit description, job.sub. It is pure; its
// errors are of kind Refused.
func (d Description) Render() (string, error) { return "", refused("not yet") }

// Wrapper gives the text of job.sh, the job's executable. It is pure; its
// errors are of kind Refused.
func (d Description) Wrapper() (string, error) { return "", refused("not yet") }

// Stage writes the sandbox of a run into dir, which must exist: job.sub, job.sh,
// script, token (mode 0600) and, when d.Sender is set, htcd-send. Everything is
// on disk when it returns. Errors of kind Refused are about d, others about dir.
func Stage(dir string, d Description, token string) error { return nil }

// ResolveImage turns the image of an HTCJob into what singularity takes: an
// absolute path and docker://, oras:// and library:// stay as they are,
// a bare reference becomes docker://, with registry before it when it names
// none of its own and registry is not empty.
func ResolveImage(image, registry string) (string, error) { return image, nil }
