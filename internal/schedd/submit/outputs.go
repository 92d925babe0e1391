package submit

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Output is something that a job is to leave behind.
type Output struct {
	Path string // of a file or a directory in the script's directory; a pattern with * ? [ ] matches several
	URL  string // where the execute node writes the file; empty: it is brought back
	Both bool   // it is brought back beside that, as other nodes of a DAG need it
}

// dirOutputs is the directory into which the wrapper moves what the outputs name. It is all that HTCondor brings back
// then, beside the streams; names that it cannot transfer elsewhere are no trouble there.
const dirOutputs = ".htcd-out"

var outputPathRE = regexp.MustCompile(`^` + outputPart + `(/` + outputPart + `)*$`)

const outputPart = `[A-Za-z0-9_*?[][A-Za-z0-9_.+=@%~:*?[\]!-]*`

func (d Description) checkOutputs() error {
	if len(d.Outputs) > condor.MaxOutputs {
		return condor.Refusal(
			"spec.outputs: expected at most %d, found %d: name a directory, or a pattern such as result/*.root",
			condor.MaxOutputs,
			len(d.Outputs),
		)
	}
	seen := map[string]bool{}
	for _, o := range d.Outputs {
		top, _, _ := strings.Cut(o.Path, "/")
		switch {
		case len(o.Path) > condor.MaxOutputPath:
			return condor.Refusal(
				"spec.outputs: expected paths of at most %d characters, found %q",
				condor.MaxOutputPath,
				condor.Clip(o.Path),
			)
		case !outputPathRE.MatchString(o.Path):
			return condor.Refusal(
				"spec.outputs: found %q, expected a path in the script's directory of letters, digits and _ . + = @ %% ~ : - with * ? [ ] for others, in which no part begins with a dot",
				o.Path,
			)
		case slices.Contains(takenFiles, top) || strings.HasPrefix(top, "_condor"):
			return condor.Refusal(
				"spec.outputs: found %q, a name that htcd or HTCondor uses: let the script give the file another name",
				o.Path,
			)
		case slices.ContainsFunc(d.Inputs, func(in Input) bool { return in.Secret && in.Name == top }):
			return condor.Refusal("spec.outputs: %s comes from a Secret and is never brought back", o.Path)
		case seen[o.Path]:
			return condor.Refusal("spec.outputs: found %q twice", o.Path)
		}
		seen[o.Path] = true
	}
	return d.checkOutputURLs()
}

// checkSuccess refuses return codes as a success which a site's own shell or container makes of an end without an
// output.
func (d Description) checkSuccess(codes []int) error {
	first := 128 + int(condor.MissingSignal)
	last := first + condor.MaxOutputs - 1
	for _, code := range codes {
		if len(d.Outputs) > 0 && code >= first && code <= last {
			return condor.Refusal(
				"the return code %d as a success: with spec.outputs, those from %d to %d may also be what a site's own container makes of a missing file: let the script return another",
				code,
				first,
				last,
			)
		}
	}
	return nil
}

// successCodes returns the return codes that are success.
func (d Description) successCodes(options []option) []int {
	if len(d.JobOptions.SuccessCodes) > 0 {
		return d.JobOptions.SuccessCodes
	}
	text, _ := value(options, "success_exit_code")
	code, _ := strconv.Atoi(text)
	return []int{code}
}

// outputLines returns the submit lines for the outputs.
func (d Description) outputLines() []option {
	if len(d.Outputs) == 0 {
		return nil
	}
	lines := []option{{"transfer_output_files", dirOutputs}, {"My." + condor.AttrOutputs, quotedPaths(d.Outputs)}}
	if remaps := d.outputRemaps(procNumber); remaps != "" {
		lines = append(lines, option{outputRemaps, `"` + remaps + `"`})
	}
	return lines
}

func quotedPaths(outputs []Output) string {
	return `"` + strings.Join(outputPaths(outputs), ",") + `"` // no path contains a comma, a quote or a backslash
}

func outputPaths(outputs []Output) []string {
	paths := make([]string, len(outputs))
	for i, o := range outputs {
		paths[i] = o.Path
	}
	return paths
}
