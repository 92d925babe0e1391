package schedd

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Output is something that a job is to leave behind.
type Output struct {
	Path string // of a file or a directory in the script's directory; a pattern with * ? [ ] matches several
	URL  string // where the execute node writes the file; empty: it is brought back
}

// dirOutputs is the directory into which the wrapper moves what the outputs name. It is all that HTCondor brings back
// then, beside the streams; names that it cannot transfer elsewhere are no trouble there.
const dirOutputs = ".htcd-out"

const (
	maxOutputs    = 20
	maxOutputPath = 200 // all of them are in an attribute, which maxText bounds
)

// missingSignal is the signal by which the wrapper ends when the first output is missing; the next number says that the
// second one is, and so on. Nothing else sends these to the wrapper: the script is in a PID namespace of its own, and
// whatever it returns is a return code. Where a site runs jobs in a shell or a container of its own, HTCondor sees 128
// more as the return code instead; as a script may return that, too, it is told as what it is, and the standard error
// says what is missing.
const missingSignal syscall.Signal = 40

var outputPathRE = regexp.MustCompile(`^` + outputPart + `(/` + outputPart + `)*$`)

const outputPart = `[A-Za-z0-9_*?[][A-Za-z0-9_.+=@%~:*?[\]!-]*`

func (d Description) checkOutputs() error {
	if len(d.Outputs) > maxOutputs {
		return Refusal(
			"spec.outputs: expected at most %d, found %d: name a directory, or a pattern such as result/*.root",
			maxOutputs,
			len(d.Outputs),
		)
	}
	seen := map[string]bool{}
	for _, o := range d.Outputs {
		top, _, _ := strings.Cut(o.Path, "/")
		switch {
		case len(o.Path) > maxOutputPath:
			return Refusal("spec.outputs: expected paths of at most %d characters, found %q", maxOutputPath, clip(o.Path))
		case !outputPathRE.MatchString(o.Path):
			return Refusal(
				"spec.outputs: found %q, expected a path in the script's directory of letters, digits and _ . + = @ %% ~ : - with * ? [ ] for others, in which no part begins with a dot",
				o.Path,
			)
		case slices.Contains(takenFiles, top) || strings.HasPrefix(top, "_condor"):
			return Refusal(
				"spec.outputs: found %q, a name that htcd or HTCondor uses: let the script give the file another name",
				o.Path,
			)
		case slices.ContainsFunc(d.Inputs, func(in Input) bool { return in.Secret && in.Name == top }):
			return Refusal("spec.outputs: %s comes from a Secret and is never brought back", o.Path)
		case seen[o.Path]:
			return Refusal("spec.outputs: found %q twice", o.Path)
		}
		seen[o.Path] = true
	}
	return d.checkOutputURLs()
}

// checkSuccess refuses return codes as a success which a site's own shell or container makes of an end without an
// output.
func (d Description) checkSuccess(codes []int) error {
	first := 128 + int(missingSignal)
	last := first + maxOutputs - 1
	for _, code := range codes {
		if len(d.Outputs) > 0 && code >= first && code <= last {
			return Refusal(
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
	lines := []option{{"transfer_output_files", dirOutputs}, {"My." + attrOutputs, quotedPaths(d.Outputs)}}
	if remaps := d.outputRemaps(); remaps != "" {
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

// MayLack reports whether the job's end may mean that an output is missing. Only its reasons show which one (see
// ErrReasons).
func (j Job) MayLack() bool {
	_, may := j.lacks()
	return may
}

// lacks returns the number of the missing output that the job's end stands for.
func (j Job) lacks() (n int, may bool) {
	if !j.Done() || j.ExitBySignal == nil || !*j.ExitBySignal || j.ExitSignal == nil {
		return 0, false
	}
	n = *j.ExitSignal - int(missingSignal)
	return n, n >= 0 && n < maxOutputs
}

// missing returns the outcome of a job that ended without one of its outputs.
func (j Job) missing() (Outcome, bool) {
	n, may := j.lacks()
	paths := strings.Split(j.Outputs, ",")
	if !may || j.Outputs == "" || n >= len(paths) {
		return Outcome{}, false
	}
	path := paths[n]
	if slices.ContainsFunc([]rune(path), func(r rune) bool { return !strconv.IsPrint(r) }) || len(path) > maxOutputPath {
		path = fmt.Sprintf("number %d", n+1) // htcd has not written this
	}
	return Outcome{State: OutcomeFailed, Reason: "OutputMissing",
		Message: "the script succeeded, but left no " + path + ", which spec.outputs names"}, true
}
