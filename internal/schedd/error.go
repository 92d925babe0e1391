package schedd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is the kind of failure: it shows who can fix it and whether a retry can help.
type Kind int

// The kinds of failure.
const (
	// Unknown failures are shown and tried again.
	Unknown Kind = iota
	// Refused is final: the description itself is wrong and is refused until it changes.
	Refused
	// Credentials are missing or expired; a new ticket may help.
	Credentials
	// NotAuthorised means that the schedd knows the account and refuses it.
	NotAuthorised
	// Unreachable means that no schedd answered. HTCondor's tools report the same if a ticket has expired and the
	// collector also requires one: check the ticket first.
	Unreachable
	// Timeout means that a command was killed at its deadline; its effect is unknown.
	Timeout
	// Limit means one of the schedd's limits, such as MAX_JOBS_PER_OWNER; a later retry may help.
	Limit
)

var kindNames = [...]string{
	"Unknown",
	"Refused",
	"Credentials",
	"NotAuthorised",
	"Unreachable",
	"Timeout",
	"LimitReached",
}

// String returns a CamelCase word, fit for a condition's reason.
func (k Kind) String() string { return kindNames[k] }

// Error is the failure of a command, or the refusal of a description before any command ran (Command is then empty).
type Error struct {
	Kind     Kind
	Command  string // condor_submit, condor_q ...
	ExitCode int    // -1 if it did not exit by itself
	Stderr   string // the tool's last lines, or htcd's own words
	// Cluster is set if condor_submit printed a cluster but failed. That cluster may be in the queue half-spooled: ask
	// for it before sending again.
	Cluster *Cluster
	// AtCommit is set if the schedd refused the complete submission at its end, and so accepted nothing.
	AtCommit bool
	Cause    error // such as a classad.SyntaxError or context.DeadlineExceeded; may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Command != "" {
		b.WriteString(e.Command + ": ")
	}
	switch {
	case e.Stderr != "":
		b.WriteString(e.Stderr)
	case e.Cause != nil:
		b.WriteString(e.Cause.Error())
	default:
		fmt.Fprintf(&b, "exit code %d without a word", e.ExitCode)
	}
	return b.String()
}

// Limit returns the name of the schedd's limit that was met, such as MAX_JOBS_PER_OWNER; empty if none was.
func (e *Error) Limit() string {
	if e.Kind != Limit {
		return ""
	}
	return limitName.FindString(e.Stderr)
}

var limitName = regexp.MustCompile(`\bMAX_JOBS_[A-Z_]+\b`)

// OfOneSubmission reports whether a limit is on the size of one submission, so that it affects no other.
func (e *Error) OfOneSubmission() bool { return e.Limit() == "MAX_JOBS_PER_SUBMISSION" }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf returns the kind of an error of this package; a bare context deadline is a Timeout, everything else Unknown.
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

// Refusal returns a refusal before any command ran.
func Refusal(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: Refused, ExitCode: -1, Stderr: err.Error(), Cause: errors.Unwrap(err)}
}

// classify finds the kind of failure in the lines that a tool printed. Order matters: some lines describe the effect of
// one cause in the words of another. Some tools echo users' expressions and file names: of their lines only the
// beginning is HTCondor's own.
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

// badValue matches condor_submit's message about a command's value before it contacts anybody.
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

// ownLine matches lines in which HTCondor reports how a connection failed. They contain nothing from a job.
var ownLine = regexp.MustCompile(`^(AUTHENTICATE|SECMAN|CEDAR):[0-9]+:`)

// signs are HTCondor 23.9's own words. Only failures known to be final are Refused; unknown ones are shown and tried
// again.
var signs = []sign{
	{Limit, []string{"Number of submitted jobs would exceed MAX_JOBS", "Number of jobs submitted would exceed MAX_JOBS"}},
	// The schedd went away during the handshake; the next line mentions authentication.
	{Unreachable, []string{"AUTHENTICATE:1002"}},
	{
		Credentials,
		[]string{
			"AUTHENTICATE:1003",
			"AUTHENTICATE:1004",
			"No credentials cache",
			"Ticket expired",
			"credentials have expired",
		},
	},
	{NotAuthorised, []string{"SECMAN:2010", "DENIED", "not authorized", "not a valid user account"}},
	{Refused, []string{"Failed to parse command file", "Parse error in expression"}},
	{Unreachable, []string{
		"Can't find address", notLocated, "unknown host", "failed to make connection", "cannot get address", "Collector has no record", "No such schedd named", "(null)", "Can't find schedd", "Failed to connect", "Failed to fetch ads", "Unable to locate", "Couldn't contact",
		"CEDAR:6001", "CEDAR:6002", "SECMAN:2003", "SECMAN:2007", "Failed to send", "Connection refused", "Connection closed",
	}},
}

// commitFailed begins condor_submit's message when the schedd rejects the complete submission.
const commitFailed = "ERROR: Failed to commit job submission into the queue."

// atCommit finds the kind of a failed commit in the lines that follow. Without any, the answer was lost: the schedd
// died and may still have the jobs. The reason may be a site's own, with users' words anywhere in it.
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

// Repeats reports whether a refusal at the commit equals an earlier one of the same submission. Every try has its own
// cluster: a reason that names the same job twice concerns somebody else's.
func (e *Error) Repeats(before *Error) bool {
	if e.Stderr == before.Stderr {
		return !someJob.MatchString(e.Stderr)
	}
	return someJob.ReplaceAllString(e.Stderr, "job") == someJob.ReplaceAllString(before.Stderr, "job")
}

var someJob = regexp.MustCompile(`\bjob [0-9]+\.-?[0-9]+`)

// nothingMatched reports whether condor_rm, condor_hold or condor_release found no job. They end with the same line
// after every failure; here that line stands alone.
func nothingMatched(stderr string) bool { return noJobs.MatchString(stderr) }

var noJobs = regexp.MustCompile(`^Couldn't find/(remove|hold|release) all jobs matching constraint`)

// plain shortens a tool's message to the useful part: condor_q adds two paragraphs of advice for HTCondor
// administrators, and without a collector some tools say nothing at all.
func plain(words string) string {
	words, _, _ = strings.Cut(words, " | Extra Info:")
	return strings.ReplaceAll(words, "(null)", "no schedd was found")
}
