package submit

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// maxEnvironment limits the total size of a job's variables in bytes: every proc spools its own copy.
const maxEnvironment = 64 << 10

// maxVariable limits a variable's value in characters.
const maxVariable = 4096

var (
	variableRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	// takenRE matches names that htcd or HTCondor sets, and those that would not arrive as written: they have a meaning
	// for apptainer, or the shell in which it prepares a container uses or drops them, as 1.4 does key and e.
	takenRE = regexp.MustCompile(
		`^(HTCPROCID|e|key|HOME|UID|EUID|GID|PROMPT_COMMAND|PREPEND_PATH|APPEND_PATH|(_CONDOR_|APPTAINER|SINGULARITY).*)$`,
	)
)

// checkEnvironment refuses variables that would not reach the script as written.
func checkEnvironment(variables map[string]string) error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		size += len(name) + len(variables[name]) + 2
		if err := CheckVariable(name, variables[name]); err != nil {
			return condor.Refusal("spec.environment: %w", err)
		}
	}
	if size > maxEnvironment {
		return condor.Refusal(
			"spec.environment: expected at most 64 KiB, found %d bytes: put them into a file that the script reads",
			size,
		)
	}
	return nil
}

// CheckVariable refuses a variable that would not reach the script as written.
func CheckVariable(name, value string) error {
	switch {
	case !variableRE.MatchString(name):
		return condor.Refusal(
			"expected a name of at most 128 letters, digits and _, which does not begin with a digit, found %q",
			condor.Clip(name),
		)
	case takenRE.MatchString(name):
		return condor.Refusal(
			"the variable %s is set by htcd, HTCondor or apptainer: choose another name, or set it in spec.script.source",
			name,
		)
	case utf8.RuneCountInString(value) > maxVariable:
		return condor.Refusal(
			"the variable %s: expected at most %d characters, found %d: put it into a file that the script reads",
			name,
			maxVariable,
			utf8.RuneCountInString(value),
		)
	}
	return oneLine("the variable "+name, value)
}

// environmentFile returns the file from which the wrapper reads the variables, one line each.
func environmentFile(variables map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		b.WriteString(name + "=" + variables[name] + "\n")
	}
	return b.String()
}
