package condor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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

// Repeats reports whether a refusal at the commit equals an earlier one of the same submission. Every try has its own
// cluster: a reason that names the same job twice concerns somebody else's.
func (e *Error) Repeats(before *Error) bool {
	if e.Stderr == before.Stderr {
		return !someJob.MatchString(e.Stderr)
	}
	return someJob.ReplaceAllString(e.Stderr, "job") == someJob.ReplaceAllString(before.Stderr, "job")
}

var someJob = regexp.MustCompile(`\bjob [0-9]+\.-?[0-9]+`)

// Clip shortens what somebody wrote, for a message.
func Clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}
