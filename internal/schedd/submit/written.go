package submit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// checkWritten checks a finished description line by line, as condor_submit reads it, whatever a line's origin: what
// was harmless where a user wrote it may not be where it is now. A refusal here is the last resort, since it cannot say
// where the user wrote it.
func checkWritten(description string) error {
	lines := strings.Split(strings.TrimSuffix(description, "\n"), "\n")
	for i, line := range lines {
		last := i == len(lines)-1
		if err := checkLine(line, last); err != nil {
			return condor.Refusal("line %d of the submit description: %w", i+1, err)
		}
	}
	return nil
}

var (
	writtenRE   = regexp.MustCompile(`^(My\.[A-Za-z_][A-Za-z0-9_]*|[a-z_][a-z0-9_]*) = [^ \t]`)
	queueLineRE = regexp.MustCompile(`^queue [1-9][0-9]*$`)
)

// procNumber and procURLs are the only macros that htcd writes for HTCJobs: the number in procArgument, in inputsOfProc
// and procOwn in the list of files, and in the URLs of outputs; procURLs at the end of that list.
const (
	procNumber = "$(ProcId)"
	procURLs   = "$(" + ownURLs + ")"
)

const procArgument = "arguments = " + procNumber

func checkLine(line string, last bool) error {
	if at, what := unplain(line); what != "" {
		return fmt.Errorf("found %s at byte %d, expected plain text", what, at+1)
	}
	switch {
	case last && !queueLineRE.MatchString(line):
		return fmt.Errorf("found %q, expected the queue statement", condor.Clip(line))
	case !last && !writtenRE.MatchString(line):
		return fmt.Errorf("found %q, expected a command and its value", condor.Clip(line))
	case strings.HasSuffix(strings.TrimRight(line, " \t"), `\`):
		return fmt.Errorf("found a backslash at the end, expected none")
	}
	if strings.HasPrefix(line, "transfer_input_files = ") {
		for _, own := range []string{procURLs, procOwn, inputsOfProc} {
			line = strings.TrimSuffix(line, ", "+own)
		}
	}
	if strings.HasPrefix(line, outputRemaps+` = "`+dirOutputs) {
		line = strings.NewReplacer(procNumber, "", nodeJobID, "", nodeIndex, "").Replace(line)
	}
	if strings.HasPrefix(line, "transfer_input_files = ") {
		line = strings.TrimSuffix(line, ", "+nodeFiles)
	}
	if m := macro.FindString(line); m != "" && line != procArgument && !slices.Contains(dagLines, line) {
		return fmt.Errorf("found the macro %q, expected its value", m)
	}
	return nil
}

// unplain finds the first character that could be more than text to a reader of the description or to a terminal; what
// is empty if there is none. A tab is text.
func unplain(s string) (at int, what string) {
	for i, r := range s {
		switch {
		case unicode.IsControl(r) && r != '\t':
			return i, fmt.Sprintf("the control character 0x%02x", r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			return i, fmt.Sprintf("the byte 0x%02x, which is no UTF-8,", s[i])
		}
	}
	return 0, ""
}
