package schedd

import (
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// classify finds the kind of failure in the lines that a tool printed. Order matters: some lines describe the effect of
// one cause in the words of another. Some tools echo users' expressions and file names: of their lines only the
// beginning is HTCondor's own.
func classify(lines []string, echoes bool) condor.Kind {
	for _, r := range signs {
		for _, line := range lines {
			if r.says(line, echoes) {
				return r.kind
			}
		}
	}
	if echoes && slices.ContainsFunc(lines, badValue.MatchString) {
		return condor.Refused
	}
	return condor.Unknown
}

// badValue matches condor_submit's message about a command's value before it contacts anybody.
var badValue = regexp.MustCompile(`^ERROR: [a-z_]+=.* is invalid, (it )?must `)

type sign struct {
	kind  condor.Kind
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
	{
		condor.Limit,
		[]string{"Number of submitted jobs would exceed MAX_JOBS", "Number of jobs submitted would exceed MAX_JOBS"},
	},
	// The schedd went away during the handshake; the next line mentions authentication.
	{condor.Unreachable, []string{"AUTHENTICATE:1002"}},
	{
		condor.Credentials,
		[]string{
			"AUTHENTICATE:1003",
			"AUTHENTICATE:1004",
			"No credentials cache",
			"Ticket expired",
			"credentials have expired",
		},
	},
	{condor.NotAuthorised, []string{"SECMAN:2010", "DENIED", "not authorized", "not a valid user account"}},
	{condor.Refused, []string{"Failed to parse command file", "Parse error in expression"}},
	{
		condor.Unreachable,
		[]string{
			"Can't find address",
			notLocated,
			"unknown host",
			"failed to make connection",
			"cannot get address",
			"Collector has no record",
			"No such schedd named",
			"(null)",
			"Can't find schedd",
			"Failed to connect",
			"Failed to fetch ads",
			"Unable to locate",
			"Couldn't contact",
			"CEDAR:6001",
			"CEDAR:6002",
			"SECMAN:2003",
			"SECMAN:2007",
			"Failed to send",
			"Connection refused",
			"Connection closed",
		},
	},
}

// commitFailed begins condor_submit's message when the schedd rejects the complete submission.
const commitFailed = "ERROR: Failed to commit job submission into the queue."

// atCommit finds the kind of a failed commit in the lines that follow. Without any, the answer was lost: the schedd
// died and may still have the jobs. The reason may be a site's own, with users' words anywhere in it.
func atCommit(lines []string) (kind condor.Kind, is bool) {
	at := slices.Index(lines, commitFailed)
	if at < 0 || at+1 == len(lines) {
		return condor.Unknown, false
	}
	for _, line := range lines[at+1:] {
		switch {
		case signs[0].says(line, true):
			return condor.Limit, true
		case notAnAccount.MatchString(line):
			return condor.NotAuthorised, true
		}
	}
	return condor.Refused, true
}

var notAnAccount = regexp.MustCompile(`^ERROR: Setting owner to "[^"]*", which is not a valid user account`)

// noJobs is what condor_rm, condor_hold and condor_release say when they found no job. They end with the same line
// after every failure; here that line stands alone.
var noJobs = regexp.MustCompile(`^Couldn't find/(remove|hold|release) all jobs matching constraint`)

// plain shortens a tool's message to the useful part: condor_q adds two paragraphs of advice for HTCondor
// administrators, and without a collector some tools say nothing at all.
func plain(words string) string {
	words, _, _ = strings.Cut(words, " | Extra Info:")
	return strings.ReplaceAll(words, "(null)", "no schedd was found")
}
