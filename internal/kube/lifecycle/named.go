package lifecycle

import (
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// itemOf returns the variables that only this job has, for people. After a loss of the ledger the status may still have
// them.
func itemOf(s Situation, p ledger.Proc) string {
	if item := s.Items[p.Proc]; item != "" {
		return item
	}
	before := s.Job.Status.Failures
	if i := slices.IndexFunc(before, func(f v1alpha1.Failure) bool { return f.JobID == p.JobID() }); i >= 0 {
		return before[i].Item
	}
	return ""
}

// nameOf names a job: "7.5, ENERGY=13000 SEED=2".
func nameOf(s Situation, p ledger.Proc) string {
	if item := itemOf(s, p); item != "" {
		return p.JobID() + ", " + item
	}
	return p.JobID()
}

// howFailed names a failed job, says how it failed, and ends with the last line of its standard error, if that was
// fetched: "7.5, ENERGY=13000 SEED=2: exit code 1: ValueError: no such channel".
func howFailed(s Situation, p ledger.Proc) string {
	said := nameOf(s, p) + ": " + p.Message
	if last := lastLine(p); last != "" && p.ExitCode != nil {
		said += ": " + last
	}
	return said
}

// maxLine bounds the quoted line of a standard error.
const maxLine = 256

// lastLine returns the script's last line of standard error.
func lastLine(p ledger.Proc) string {
	stderr := p.Stderr
	if p.Fetched == ledger.Incomplete { // the last one names what is missing
		stderr = stderr[:max(strings.LastIndexByte(stderr, '\n'), 0)]
	}
	return LastLine(stderr)
}

// LastLine returns the last line of a script's standard error. Lines of htcd's own count only if there is no other.
func LastLine(stderr string) string {
	last := ""
	for _, line := range slices.Backward(strings.Split(stderr, "\n")) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "htcd: ") {
			return Shorten(line, maxLine)
		}
		if last == "" {
			last = line
		}
	}
	return Shorten(last, maxLine)
}

// lastWords tells of the last line of the first standard error that was fetched, if the failure itself was told of
// before.
func lastWords(before, after v1alpha1.HTCJobStatus, s Situation) []Event {
	has := func(f v1alpha1.Failure) bool { return f.Stderr != "" }
	if before.Failed == 0 || slices.ContainsFunc(before.Failures, has) || !slices.ContainsFunc(after.Failures, has) {
		return nil
	}
	for _, p := range s.Failures {
		if p.ExitCode != nil && lastLine(p) != "" {
			return []Event{{true, "JobFailed", howFailed(s, p)}}
		}
	}
	return nil
}
