package schedd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind says what went wrong, and so who can mend it and whether trying again
// can help.
type Kind int

// The kinds of failure.
const (
	// Unknown trouble, to be shown and tried again.
	Unknown Kind = iota
	// Refused is final: the description itself is wrong, and is refused
	// again until it changes.
	Refused
	// Credentials are absent or expired; a new ticket may help.
	Credentials
	// NotAuthorised means that the schedd knows us and says no.
	NotAuthorised
	// Unreachable means that no schedd answered. HTCondor's tools say the same when
	// a ticket expired and the collector wants one too: look at the ticket first.
	Unreachable
	// Timeout means that a command was killed at its deadline: what it began
	// may have happened or not.
	Timeout
	// Limit is one of the schedd's own, such as MAX_JOBS_PER_OWNER; later perhaps.
	Limit
)

var kindNames = [...]string{"Unknown", "Refused", "Credentials", "NotAuthorised", "Unreachable", "Timeout", "LimitReached"}

// String is a CamelCase word, fit for a condition's reason.
func (k Kind) String() string { return kindNames[k] }

// Error is the failure of one command, or the refusal of a description before
// any command ran (Command is then empty).
type Error struct {
	Kind     Kind
	Command  string // condor_submit, condor_q ...
	ExitCode int    // -1 when it did not exit by itself
	Stderr   string // the tool's last lines, or our own words
	// Cluster is set when condor_submit printed a cluster and yet failed. That
	// cluster may stand in the queue half-spooled: ask for it before sending again.
	Cluster *Cluster
	// AtCommit is set when the schedd refused the whole submission at its end, and so took nothing.
	AtCommit bool

	err error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Command != "" {
		b.WriteString(e.Command + ": ")
	}
	switch {
	case e.Stderr != "":
		b.WriteString(e.Stderr)
	case e.err != nil:
		b.WriteString(e.err.Error())
	default:
		fmt.Fprintf(&b, "exit code %d without a word", e.ExitCode)
	}
	return b.String()
}

// Unwrap gives what stands behind the error, such as a classad.SyntaxError or
// context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.err }

// KindOf finds the kind of an error of this package; a bare context deadline is a
// Timeout, everything else Unknown.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Unknown
}

// Refusal is a refusal of something before any command ran.
func Refusal(format string, args ...any) error { return refused(format, args...) }

func refused(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: Refused, ExitCode: -1, Stderr: err.Error(), err: errors.Unwrap(err)}
}

// classify finds the kind of failure in the lines that a tool printed. They are in order: several lines hold the effect of
// one cause in the words of another. Some tools echo what users wrote, expressions and names of files: of those only the beginning
// of a line is HTCondor's own.
func classify(lines []string, echoes bool) Kind {
	for _, r := range signs {
		for _, line := range lines {
			if r.says(line, echoes) {
				return r.kind
			}
		}
	}
	if echoes && slices.ContainsFunc(lines, badValue.MatchString) {
		return Refused
	}
	return Unknown
}

// badValue is what condor_submit says of a command's value before it asks anybody anything.
var badValue = regexp.MustCompile(`^ERROR: [a-z_]+=.* is invalid, (it )?must `)

type sign struct {
	kind  Kind
	words []string
}

func (r sign) says(line string, echoes bool) bool {
	line = strings.TrimPrefix(line, "ERROR: ")
	for _, w := range r.words {
		if strings.HasPrefix(line, w) || strings.Contains(line, w) && (!echoes || ownLine.MatchString(line)) {
			return true
		}
	}
	return false
}

// ownLine is one of those in which HTCondor says how a connection failed. Nothing of a job stands in them.
var ownLine = regexp.MustCompile(`^(AUTHENTICATE|SECMAN|CEDAR):[0-9]+:`)

// signs are HTCondor 23.9's own words. Only what was seen to be final is Refused: what is
// not known is shown and tried again.
var signs = []sign{
	{Limit, []string{"Number of submitted jobs would exceed MAX_JOBS", "Number of jobs submitted would exceed MAX_JOBS"}},
	// The schedd went away in the middle of the handshake; the line after it speaks of authentication.
	{Unreachable, []string{"AUTHENTICATE:1002"}},
	{Credentials, []string{"AUTHENTICATE:1003", "AUTHENTICATE:1004", "No credentials cache", "Ticket expired", "credentials have expired"}},
	{NotAuthorised, []string{"SECMAN:2010", "DENIED", "not authorized", "not a valid user account"}},
	{Refused, []string{"Failed to parse command file", "Parse error in expression"}},
	{Unreachable, []string{
		"Can't find address", notLocated, "unknown host", "failed to make connection", "cannot get address", "Collector has no record", "No such schedd named", "(null)", "Can't find schedd", "Failed to connect", "Failed to fetch ads", "Unable to locate", "Couldn't contact",
		"CEDAR:6001", "CEDAR:6002", "SECMAN:2003", "SECMAN:2007", "Failed to send", "Connection refused", "Connection closed",
	}},
}

// commitFailed begins what condor_submit says when the schedd does not take the whole submission.
const commitFailed = "ERROR: Failed to commit job submission into the queue."

// atCommit finds the kind of a failed commit in the lines after it. Without any it is a lost answer: the schedd died, and may have
// the jobs all the same. The reason may be a site's own, with what users wrote anywhere in it.
func atCommit(lines []string) (kind Kind, is bool) {
	at := slices.Index(lines, commitFailed)
	if at < 0 || at+1 == len(lines) {
		return Unknown, false
	}
	for _, line := range lines[at+1:] {
		switch {
		case signs[0].says(line, true):
			return Limit, true
		case notAnAccount.MatchString(line):
			return NotAuthorised, true
		}
	}
	return Refused, true
}

var notAnAccount = regexp.MustCompile(`^ERROR: Setting owner to "[^"]*", which is not a valid user account`)

// Repeats reports whether a refusal at the commit is the same as one before it, of another try of the same. Every try has a
// cluster of its own: a reason that names the same job twice is about somebody else's.
func (e *Error) Repeats(before *Error) bool {
	if e.Stderr == before.Stderr {
		return !someJob.MatchString(e.Stderr)
	}
	return someJob.ReplaceAllString(e.Stderr, "job") == someJob.ReplaceAllString(before.Stderr, "job")
}

var someJob = regexp.MustCompile(`\bjob [0-9]+\.-?[0-9]+`)

// nothingMatched tells whether condor_rm found nothing to remove. It ends with the same
// line after every trouble; here it stands alone.
func nothingMatched(stderr string) bool {
	return strings.HasPrefix(stderr, "Couldn't find/remove all jobs matching constraint")
}

// plain shortens what a tool said to what helps: condor_q adds two paragraphs of advice to an
// administrator of HTCondor, and without a collector some tools say nothing at all.
func plain(words string) string {
	words, _, _ = strings.Cut(words, " | Extra Info:")
	return strings.ReplaceAll(words, "(null)", "no schedd was found")
}
