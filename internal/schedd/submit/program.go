package submit

import (
	"regexp"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// executableRE is that of the API.
var executableRE = regexp.MustCompile(`^/?[A-Za-z0-9_][A-Za-z0-9_.+=@%~-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@%~-]*)*$`)

// checkProgram refuses what cannot be run.
func (d Description) checkProgram() error {
	switch {
	case d.Executable == "":
		return checkCommand("command", d.Command)
	case d.Command != "" || d.Source != "":
		return condor.Refusal("spec.script.executable: found command or source, too: expected it, or these two")
	case !executableRE.MatchString(d.Executable):
		return condor.Refusal(
			"spec.script.executable %q: expected the name of an input, or an absolute path in the image, of letters, digits and _ . + = @ %% ~ -",
			d.Executable,
		)
	}
	return nil
}

// program is the path of what the container's command gets first, in the script's directory; empty: nothing.
func (d Description) program() string {
	switch {
	case d.Executable == "":
		return fileScript
	case strings.HasPrefix(d.Executable, "/"):
		return ""
	}
	return d.Executable
}

// words are those of the container's command before it.
func (d Description) words() string {
	if strings.HasPrefix(d.Executable, "/") {
		return d.Executable
	}
	return d.Command
}
